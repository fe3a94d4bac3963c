#!/usr/bin/env bash
# Run all tests: bash scripts/test.sh [--locked] [PYTEST OPTIONS]
# Makes or reuses the environment in .venv; with --locked first, the one of requirements.lock.
#   WORKERS=3        processes that run tests, a GB each
#   PYTHON=python3   what makes .venv: Python 3.11 to 3.14
#   CC=cc           the C compiler; without any, setup.py takes ziglang
#   RESMLP_DATA=DIR  holds real data; tests on it are skipped without
# As root on Debian it installs what tests are skipped without: chromium, nginx and curl.
set -euo pipefail
lock= extras=train,export,dev,image,serve,benchmark
if [ "${1:-}" = --locked ]; then
    lock=requirements.lock
    shift
fi
cd "$(dirname "$0")/.."
. scripts/environment.sh

missing=
for program in chromium nginx curl; do
    command -v "$program" >/dev/null || missing+=" $program"
done
if [ "$missing" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing; } \
        >/dev/null 2>&1 || echo "not installed, so some tests are skipped:$missing" >&2
fi
ruff check .
ruff format --check .
# Tests start hundreds of processes, and each would compile the package anew.
unset PYTHONDONTWRITEBYTECODE
# Tests of servers wait, so three workers fill two cores. More threads in each would only wait for
# each other.
workers=${WORKERS:-3}
unset WORKERS  # recipes of examples/ have one of that name
OMP_NUM_THREADS=1 python -m pytest --numprocesses "$workers" --dist worksteal "$@"
