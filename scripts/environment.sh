# Sourced by quickstart.sh and test.sh from the project's root: makes or reuses .venv and activates
# it. The installation runs again when setup.py, constraints.txt or what is compiled change, and
# when .venv was moved or copied. $lock is the name of a lock file, whose packages, by their hashes,
# then make .venv anew; or it is empty.
#   PYTHON=python3  what makes .venv: Python 3.11 or 3.12. If it is not given, python3.12 and
#                   python3.11 stand in for a python3 of another version

find_python() {
    local candidate said candidates=(python3 python3.12 python3.11)
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    if [ "${PYTHON:-}" ]; then
        said=$("$PYTHON" --version 2>/dev/null) || said="cannot be run"
        echo "PYTHON=$PYTHON ($said): Python 3.11 or 3.12 with venv is needed" >&2
    else
        echo "Python 3.11 or 3.12 with venv is needed; name it with PYTHON=/path/to/python" >&2
    fi
    return 2
}

# Scripts name their Python by its whole path, which leads elsewhere once .venv is moved or copied.
# That of pip is the oldest. Where the path is long, it stands in the second line.
is_in_place() {
    local bin
    bin=$(sed -n '1,2s|^[^/]*\(/.*\)/python.*|\1|p' .venv/bin/pip 2>/dev/null)
    [ "$bin" -ef .venv/bin ]
}

# What .venv/installed says. A locked installation has the versions of constraints.txt, so it serves
# where no lock is asked for.
stamp_of() { echo "$1 $(cat setup.py resmlp_mt/native/*.[ch] constraints.txt "$1" | cksum)"; }
is_current() {
    local installed
    installed=$(cat .venv/installed 2>/dev/null) || return
    is_in_place || return
    [ "$installed" = "$(stamp_of "${lock:-${installed%% *}}" 2>/dev/null)" ]
}

pip_install() { .venv/bin/python -m pip install --quiet "$@"; }

install_locked() {
    # The one source package, which has no wheel, is built with the setuptools of the lock. torch's
    # CPU build is on torch's own index, which is asked only where pip knows no other that has it:
    # one that cannot be reached takes pip minutes.
    local hashed=(pip_install --require-hashes --no-build-isolation
        --only-binary :all: --no-binary antlr4-python3-runtime)
    "${hashed[@]}" --no-deps --requirement <(pinned setuptools)
    if [ "$lock" = requirements.lock ]; then
        "${hashed[@]}" --no-deps --requirement <(pinned torch) 2>/dev/null ||
            "${hashed[@]}" --no-deps --requirement <(pinned torch) --retries 1 \
                --extra-index-url https://download.pytorch.org/whl/cpu
    fi
    "${hashed[@]}" --requirement "$lock"
    pip_install --no-deps --no-build-isolation --use-pep517 --editable .
}
pinned() { sed -n "/^$1==/,/[^\\\\]\$/p" "$lock"; }

# Where there is no C compiler, one comes from PyPI. A lock has none.
use_ziglang() {
    if [ "${CC:-}" ] || command -v cc >/dev/null || command -v gcc >/dev/null; then return; fi
    pip_install ziglang==0.17.1
    # By its path: pip hides .venv's packages from what it builds with.
    CC=$(.venv/bin/python -c 'import ziglang; print(*ziglang.__path__)')/zig
    export CC="$CC cc" LDSHARED="$CC cc -shared"
}

if ! is_current; then
    python=$(find_python)
    echo "installing${lock:+ $lock} into .venv with $("$python" --version) ..." >&2
    rm -f .venv/installed
    clear=()
    if [ "$lock" ] || ! is_in_place; then clear=(--clear); fi
    "$python" -m venv "${clear[@]}" .venv
    if [ "$lock" ]; then
        install_locked
    else
        use_ziglang
        pip_install --editable '.[dev,image,export,serve,benchmark]' --constraint constraints.txt
    fi
    stamp_of "${lock:-constraints.txt}" >.venv/installed
fi
. .venv/bin/activate
. scripts/cpu.sh
