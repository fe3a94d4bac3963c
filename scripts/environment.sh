# Sourced by quickstart.sh and test.sh from the project's root: makes or reuses .venv and activates
# it. The installation runs again when setup.py or constraints.txt change.

find_python() {
    for candidate in "${PYTHON:-python3}" python3.12 python3.11; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or 3.12 with venv is needed; name it with PYTHON=/path/to/python" >&2
    return 2
}

stamp=$(cat setup.py constraints.txt | cksum)
if [ "$(cat .venv/installed 2>/dev/null)" != "$stamp" ]; then
    python=$(find_python)
    echo "installing into .venv with $("$python" --version) ..." >&2
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --editable '.[dev,image,export,serve,benchmark]' --constraint constraints.txt
    echo "$stamp" >.venv/installed
fi
. .venv/bin/activate
. scripts/cpu.sh
