#!/usr/bin/env bash
# Prepare WMT14 English-German or English-French:
#   bash examples/wmt14/prepare.sh LANG [--raw DIR] [--base-url URL] [--checksums FILE] [FLAG...]
#   LANG              de or fr
#   --raw DIR         where the archives are, or are to go (default: data-bin/wmt14-raw): 1.7 GB for
#                     de, 6.6 GB for fr, and the text from them, about as much again or twice that
#   --base-url URL    where they are downloaded from, if they are not there
#   --checksums FILE  what is known of them (default: examples/wmt14/checksums)
#   FLAG              anything else of resmlp-mt prepare's, such as --workers 16
# Makes data-bin/wmt14-en-LANG (DATA= names another). newstest2013 is for validation, newstest2014
# (all 3,003 lines) for the test.
set -euo pipefail
cd "$(dirname "$0")/../.."

lang=${1:?usage: prepare.sh de|fr [--raw DIR] [--base-url URL] [--checksums FILE] [FLAG...]}
shift
raw=data-bin/wmt14-raw url=https://www.statmt.org checksums=examples/wmt14/checksums flags=()
while [ $# -gt 0 ]; do
    case $1 in
    --raw) raw=${2:?--raw needs a folder}; shift 2 ;;
    --base-url) url=${2:?--base-url needs an address}; shift 2 ;;
    --checksums) checksums=${2:?--checksums needs a file}; shift 2 ;;
    *) flags+=("$1"); shift ;;
    esac
done

archives=(wmt13/training-parallel-europarl-v7.tgz wmt13/training-parallel-commoncrawl.tgz
    wmt14/training-parallel-nc-v9.tgz wmt13/test.tgz wmt14/test-full.tgz)
case $lang in
de) vocabulary=32000 ;;
fr) vocabulary=40000
    archives+=(wmt13/training-parallel-un.tgz wmt10/training-giga-fren.tar) ;;
*) echo "prepare.sh: LANG is de or fr, not $lang" >&2; exit 2 ;;
esac

python scripts/fetch.py --base-url "$url" --to "$raw" --checksums "$checksums" \
    "${archives[@]}"
python examples/wmt14/prepare.py "$raw" --lang "$lang" --out "$raw/en-$lang"
resmlp-mt prepare --source-lang en --target-lang "$lang" \
    --train "$raw/en-$lang/train" --valid "$raw/en-$lang/valid" --test "$raw/en-$lang/test" \
    --vocab-size "$vocabulary" --joined --character-coverage 0.99999 \
    --max-length 250 --max-ratio 1.5 \
    --out "${DATA:-data-bin/wmt14-en-$lang}" ${flags[@]+"${flags[@]}"}
