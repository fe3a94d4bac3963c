#!/usr/bin/env bash
# Prepare Multi30k en-de: bash examples/multi30k/prepare.sh [--raw DIR]
#   --raw DIR  a folder with train, val and test_2016_flickr in .en and .de (plain, .gz or .xz);
#              without it the files are downloaded from the data set's repository
# Makes data-bin/multi30k (DATA= names another): 29,000 training pairs, 6,000 joint subwords. About
# 10 s.
set -euo pipefail
cd "$(dirname "$0")/../.."

raw=
while [ $# -gt 0 ]; do
    case $1 in
    --raw) raw=${2:?--raw needs a folder}; shift 2 ;;
    *) echo "prepare.sh: unknown argument $1" >&2; exit 2 ;;
    esac
done

if [ -z "$raw" ]; then
    raw=data-bin/multi30k-raw
    mkdir -p "$raw"
    base=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw
    for file in {train,val,test_2016_flickr}.{en,de}.gz; do
        [ -f "$raw/$file" ] && continue
        curl --fail --location --silent --show-error --output "$raw/$file.part" "$base/$file"
        mv "$raw/$file.part" "$raw/$file"
    done
fi

resmlp-mt prepare --source-lang en --target-lang de \
    --train "$raw/train" --valid "$raw/val" --test "$raw/test_2016_flickr" \
    --vocab-size 6000 --joined --out "${DATA:-data-bin/multi30k}"
