# Sourced by quickstart.sh and test.sh from the project's root: makes or reuses .venv and activates
# it. The installation runs again when setup.py, constraints.txt or what is compiled change, when
# other extras are wanted, and when .venv was moved or copied. $extras are those of setup.py to
# install. $lock is the name of a lock file, whose packages, by their hashes, then make .venv anew;
# or it is empty.
#   PYTHON=python3  what makes .venv: Python 3.11 to 3.14. If it is not given, python3.12 and others
#                   stand in for a python3 of another version
#   CC=cc           the C compiler; without any, setup.py takes ziglang

find_python() {
    local candidate said candidates=(python3 python3.12 python3.11 python3.13 python3.14)
    local last=15
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    [ -z "$lock" ] || last=13  # whose hashes are of wheels for 3.11 and 3.12
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, $last))" \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    if [ "${PYTHON:-}" ]; then
        said=$("$PYTHON" --version 2>/dev/null) || said="cannot be run"
        echo "PYTHON=$PYTHON ($said): Python 3.11 to 3.$((last - 1)) with venv is needed" >&2
    else
        echo "Python 3.11 to 3.$((last - 1)) with venv (Debian: python3-venv) is needed; name it with" \
            "PYTHON=/path/to/python. 'uv python install 3.12', 'pyenv install 3.12' and 'conda" \
            "create --name py312 python=3.12' bring one" >&2
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

# What .venv/installed says, and the extras behind it. A locked installation has the versions of
# constraints.txt, and all extras, so it serves where no lock is asked for.
stamp_of() { echo "$1 $(cat setup.py resmlp_mt/native/*.[ch] constraints.txt "$1" | cksum)"; }
is_current() {
    local installed= have= extra
    { read -r installed && read -r have; } 2>/dev/null <.venv/installed || [ "$installed" ] || return
    is_in_place || return
    [ "$installed" = "$(stamp_of "${lock:-${installed%% *}}" 2>/dev/null)" ] || return
    for extra in ${extras//,/ }; do
        [[ ,$have, = *,$extra,* ]] || return
    done
}

pip_install() { .venv/bin/python -m pip install --progress-bar on "$@" >&2; }

# torch's CPU build for x86-64 Linux is on torch's own index, which is asked only where pip knows no
# other that has it: one that cannot be reached takes pip minutes. PyPI's build brings 4 GB for GPUs.
install_cpu_torch() {
    "$@" 2>/dev/null ||
        "$@" --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu
}
wants_cpu_torch() {
    [ "$(uname -sm)" = "Linux x86_64" ] && [ ! -e /proc/driver/nvidia/version ] &&
        ! command -v nvidia-smi >/dev/null
}

install_locked() {
    # The one source package, which has no wheel, is built with the setuptools of the lock.
    local hashed=(pip_install --require-hashes --no-build-isolation
        --only-binary :all: --no-binary antlr4-python3-runtime)
    pinned setuptools >.venv/setuptools.txt
    pinned torch >.venv/torch.txt
    "${hashed[@]}" --no-deps --requirement .venv/setuptools.txt
    [ "$lock" != requirements.lock ] ||
        install_cpu_torch "${hashed[@]}" --no-deps --requirement .venv/torch.txt
    "${hashed[@]}" --requirement "$lock"
    pip_install --no-deps --no-build-isolation --use-pep517 --editable .
}
pinned() { sed -n "/^$1==/,/[^\\\\]\$/p" "$lock"; }

install_extras() {
    local torch
    torch=torch==$(sed -n 's/^torch==//p' constraints.txt)
    if wants_cpu_torch; then
        install_cpu_torch pip_install "$torch+cpu" --constraint constraints.txt ||
            echo "torch's index for CPUs cannot be reached: torch comes with what GPUs need" >&2
    fi
    pip_install --editable ".[$extras]" --constraint constraints.txt
    # Where there is no wheel of it, one is made without what is compiled.
    .venv/bin/python -c 'import sys, importlib.util as u; sys.exit(not u.find_spec("fairseq"))' ||
        pip_install "$(.venv/bin/python resmlp_mt/compat/fairseq_wheel.py .venv)" \
            --constraint constraints.txt
}

if ! is_current; then
    python=$(find_python)
    echo "installing${lock:+ $lock} into .venv with $("$python" --version) ..." >&2
    rm -f .venv/installed
    clear=
    if [ "$lock" ] || ! is_in_place; then clear=1; fi
    "$python" -m venv ${clear:+--clear} .venv
    if [ "$lock" ]; then
        install_locked
        extras=train,export,dev,image,serve,benchmark
    else
        install_extras
    fi
    printf '%s\n' "$(stamp_of "${lock:-constraints.txt}")" "$extras" >.venv/installed
fi
. .venv/bin/activate
. scripts/cpu.sh
