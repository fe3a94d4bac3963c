#!/usr/bin/env bash
# Run the compiled code's forms for ARM under emulation, and compare them with each other and with
# the plain one of this machine, inside .venv, on Debian 12 for x86:
#   apt-get install qemu-user gcc-aarch64-linux-gnu
#   bash scripts/arm.sh [KERNELS]
#   KERNELS  the compiled code for 64-bit ARM, as in a wheel (default: gcc builds it from here)
# A Python for ARM comes from Debian, and numpy and what else an export needs from PyPI, into a
# temporary folder. What is compared are translations and their scores, and classes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Debian's packages, by an apt of its own: this machine's knows nothing of them.
mkdir -p "$work"/{state/lists,cache/archives}/partial "$work/arm"
: >"$work/status"
arm_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$work/state" \
        -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 "$@"
}
arm_apt update
arm_apt -y --no-install-recommends --download-only install \
    python3.11-minimal libpython3.11-stdlib libstdc++6 libgcc-s1 >/dev/null
for package in "$work"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$work/arm"
done
pip install --quiet --no-deps --target "$work/packages" --only-binary :all: --python-version 3.11 \
    --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --constraint constraints.txt \
    numpy sentencepiece sentencex regex tqdm pillow filelock

# The package as it is here, with the code for ARM in place of that for x86.
cp -r resmlp_mt "$work/packages/resmlp_mt"
rm -f "$work"/packages/resmlp_mt/native/kernels*
if [ "${1:-}" ]; then
    cp "$1" "$work/packages/resmlp_mt/native/kernels.abi3.so"
else
    CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared" python setup.py --quiet \
        build_ext --force --build-temp "$work/temp" --build-lib "$work/built"
    cp "$work"/built/resmlp_mt/native/kernels* "$work/packages/resmlp_mt/native/kernels.abi3.so"
fi

resmlp-mt export en-de --int8 --out "$work/int8" >/dev/null
resmlp-mt export en-de --out "$work/full" >/dev/null
resmlp-mt export cifar10 --int8 --out "$work/classes" >/dev/null
emulated() {
    env PYTHONHOME="$work/arm/usr" PYTHONPATH="$work/packages" \
        qemu-aarch64 -cpu "${processor:-max}" -L "$work/arm" "$work/arm/usr/bin/python3.11" "$@"
}
said=()
for kind in i8mm dotprod plain; do
    echo "$kind, emulated ..."
    RESMLP_CPU_ISA=$kind emulated -B scripts/arm.py "$work" >"$work/$kind.json"
    said+=("$work/$kind.json")
done
# A processor of 2016 has neither kind of products.
test "$(processor=cortex-a72 emulated -BPc \
    'from resmlp_mt.engines.kernels.library import find_kind; print(find_kind())')" = plain
RESMLP_CPU_ISA=plain python scripts/arm.py "$work" >"$work/here.json"
python scripts/arm.py --compare ${said[@]+"${said[@]}"} "$work/here.json"
