#!/usr/bin/env bash
# Try the project on other systems, as root: bash scripts/machines.sh [OPTIONS] SYSTEM ...
# SYSTEM is one that debootstrap knows: bookworm, trixie, sid (Debian 12, 13 and unstable); or
# aarch64: Debian 13 for ARM, under the qemu-user of Debian 13. Chroots are made in a folder, and
# kept. In each the core is installed from this checkout and tried by smoke.py: by root and by
# another user, in a path with a blank. Takes 1 GB for each, and 8 GB more with --train.
#   --work DIR       where the chroots lie (/var/tmp/machines)
#   --mirror URL     of debootstrap, if it is not the usual one
#   --copy PATH      a file that is copied into every chroot, such as /etc/pip.conf
#   --bind DIR       a folder that is there, too, such as one of wheels
#   --train          then runs the quick start, and tests/nn and tests/models
set -euo pipefail
cd "$(dirname "$0")/.."
work=/var/tmp/machines mirror= train= systems= copies= binds=
while [ $# -gt 0 ]; do
    case $1 in
        --work) work=$2; shift ;;
        --mirror) mirror=$2; shift ;;
        --copy) copies+=" $2"; shift ;;
        --bind) binds+=" $2"; shift ;;
        --train) train=1 ;;
        bookworm | trixie | sid  | aarch64) systems+=" $1" ;;
        *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
[ "$systems" ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "machines.sh: debootstrap and chroot need root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "machines.sh: apt-get install debootstrap" >&2; exit 2; }
mkdir -p "$work"

packages=python3,python3-venv,python3-dev,gcc,libc6-dev,ca-certificates,bash
bound=()
unmount() { for place in ${bound[@]+"${bound[@]}"}; do umount "$place"; done; }
trap unmount EXIT
bind() { mkdir -p "$2" && mount --bind "$1" "$2" && bound=("$2" ${bound[@]+"${bound[@]}"}); }

# make_root SYSTEM: a chroot with what was asked for.
make_root() {
    local root=$work/$1 path
    [ -e "$root/made" ] || {
        debootstrap --variant=minbase --include=$packages "$1" "$root" $mirror >"$work/$1.log" &&
            touch "$root/made"
    }
    bind /proc "$root/proc"
    bind /dev "$root/dev"
    bind /dev/shm "$root/dev/shm"  # which users other than root may write to
    cp /etc/resolv.conf "$root/etc/"
    for path in $copies; do cp -L "$path" "$root$path" || install -D "$path" "$root$path"; done
    for path in $binds; do bind "$path" "$root$path"; done
    chroot "$root" id tester >/dev/null 2>&1 || chroot "$root" useradd --create-home tester
}

copy_source() { # to a folder
    rm -rf "$1" && mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard |
        xargs -0 cp --parents --no-dereference --target-directory="$1"
}

try_core() { # as a user, in a chroot
    local home=/root
    [ "$1" = root ] || home=/home/$1
    copy_source "$work/$2$home/a b"
    chroot "$work/$2" chown -R "$1" "$home/a b"
    chroot "$work/$2" su "$1" -c "cd '$home/a b' && python3 -m venv .core &&
        .core/bin/python -m pip install --quiet --no-compile '.[serve]' &&
        .core/bin/python scripts/smoke.py .core/bin/python"
}

# Nothing is run there but Python, so nothing of that Debian is set up.
try_aarch64() {
    local root=$work/aarch64 deb
    make_root trixie
    [ -e "$work/qemu/usr/bin/qemu-aarch64" ] || {
        chroot "$work/trixie" bash -c "apt-get update -qq && cd /tmp && apt-get download -qq qemu-user"
        dpkg-deb -x "$work"/trixie/tmp/qemu-user_*.deb "$work/qemu"
    }
    [ -e "$root/made" ] || {
        debootstrap --foreign --arch=arm64 --variant=minbase \
            --include=python3,libstdc++6,ca-certificates trixie "$root" $mirror >"$work/aarch64.log"
        for deb in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
        touch "$root/made"
    }
    rm -rf "$root/core" "$work/trixie/root/arm" && mkdir "$root/core"
    bash scripts/wheels.sh "$work/trixie/root/arm" linux-aarch64
    chroot "$work/trixie" bash -ec "python3 -m venv /root/pip && cd /root/arm &&
        /root/pip/bin/python -m zipfile -e *.whl core"
    cp -r "$work"/trixie/root/arm/core/. "$root/core"
    sed -n 's/^Requires-Dist: \([^;]*\)\(; extra == "serve"\)\{0,1\}$/\1/p' \
        "$root"/core/resmlp_mt-*.dist-info/METADATA >"$work/trixie/root/arm/asked.txt"
    chroot "$work/trixie" /root/pip/bin/pip install --quiet --no-compile --target /root/arm/with \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
        --platform manylinux2014_aarch64 --only-binary :all: --requirement /root/arm/asked.txt
    cp -r "$work"/trixie/root/arm/with/. "$root/core"
    "$work/qemu/usr/bin/qemu-aarch64" --version | head -n 1
    PYTHONPATH=$root/core python3 scripts/smoke.py \
        "$work/qemu/usr/bin/qemu-aarch64" -L "$root" "$root/usr/bin/python3"
}

for system in $systems; do
    echo "== $system, $(date --utc +%F)"
    if [ "$system" = aarch64 ]; then
        try_aarch64
        continue
    fi
    make_root "$system"
    for user in root tester; do
        echo "-- $user"
        try_core "$user" "$system"
    done
    [ ! "$train" ] || chroot "$work/$system" su tester -c "cd '/home/tester/a b' &&
        OMP_NUM_THREADS=1 bash scripts/quickstart.sh &&
        .venv/bin/python -m pip install --quiet pytest hypothesis filelock &&
        OMP_NUM_THREADS=1 .venv/bin/python -m pytest -q tests/nn tests/models"
done
