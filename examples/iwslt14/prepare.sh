#!/usr/bin/env bash
# Prepare IWSLT14 German-English:
#   bash examples/iwslt14/prepare.sh [--raw DIR] [--base-url URL] [--checksums FILE] [FLAG...]
#   --raw DIR         where de-en.tgz is, or is to go (default: data-bin/iwslt14-raw); 20 MB
#   --base-url URL    where it is downloaded from, if it is not there
#   --checksums FILE  what is known of it (default: examples/iwslt14/checksums)
#   FLAG              anything else of resmlp-mt prepare's, such as --workers 4
# Makes data-bin/iwslt14 (DATA= names another): about 160,000 training pairs, 10,000 joint subwords.
set -euo pipefail
cd "$(dirname "$0")/../.."

raw=data-bin/iwslt14-raw checksums=examples/iwslt14/checksums flags=()
url=https://dl.fbaipublicfiles.com/fairseq/data/iwslt14
while [ $# -gt 0 ]; do
    case $1 in
    --raw) raw=${2:?--raw needs a folder}; shift 2 ;;
    --base-url) url=${2:?--base-url needs an address}; shift 2 ;;
    --checksums) checksums=${2:?--checksums needs a file}; shift 2 ;;
    *) flags+=("$1"); shift ;;
    esac
done

python scripts/fetch.py --base-url "$url" --to "$raw" --checksums "$checksums" de-en.tgz
python examples/iwslt14/prepare.py "$raw/de-en.tgz" --out "$raw/text"
resmlp-mt prepare --source-lang de --target-lang en \
    --train "$raw/text/train" --valid "$raw/text/valid" --test "$raw/text/test" \
    --vocab-size 10000 --joined --out "${DATA:-data-bin/iwslt14}" ${flags[@]+"${flags[@]}"}
