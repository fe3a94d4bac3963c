#!/usr/bin/env bash
# Prepare CIFAR-10: bash examples/cifar10/prepare.sh [--raw FILE] [--train N] [--val N]
#   --raw FILE  cifar-10-binary.tar.gz; without it, it is downloaded (162 MB)
#   --train N, --val N    images of each class (all: 5000 and 1000)
# Makes data-bin/cifar10 with train/ and val/, a folder for each class. About a minute.
# Folders of images, or a .tar of such folders, need no preparation: name them with DATA=.
set -euo pipefail
cd "$(dirname "$0")/../.."

raw= limits=()
while [ $# -gt 0 ]; do
    case $1 in
    --raw) raw=${2:?--raw needs a file}; shift 2 ;;
    --train | --val) limits+=("$1" "${2:?$1 needs a number}"); shift 2 ;;
    *) echo "prepare.sh: unknown argument $1" >&2; exit 2 ;;
    esac
done

if [ -z "$raw" ]; then
    raw=data-bin/cifar-10-binary.tar.gz
    if [ ! -f "$raw" ]; then
        curl --fail --location --silent --show-error --output "$raw.part" \
            https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
        mv "$raw.part" "$raw"
    fi
fi

python examples/cifar10/prepare.py "$raw" --out "${DATA:-data-bin/cifar10}" ${limits[@]+"${limits[@]}"}
