#!/usr/bin/env bash
# Try the core with the oldest versions that setup.py admits: bash scripts/floors.sh
# Builds the wheel, installs it with these versions in a temporary folder, and runs smoke.py. Needs a
# network. What has no wheel for this Python in so old a version is named by pip.
#   PYTHON=python3.11   a Python, of which the floors are
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
python=$work/venv/bin/python
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work" .
wheel=$(echo "$work"/*.whl)
"$python" -m pip install --quiet --no-deps "$wheel"
"$python" -c "if True:
    from importlib.metadata import requires
    print(*(asked.replace('>=', '==') for asked in requires('resmlp_mt') if ';' not in asked))
" | tr ' ' '\n' | tee "$work/floors.txt"
"$python" -m pip install --quiet --no-compile --only-binary :all: --requirement "$work/floors.txt"
"$python" scripts/smoke.py "$python"
