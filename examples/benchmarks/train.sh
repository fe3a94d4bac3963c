#!/usr/bin/env bash
# Race full updates against fairseq's Transformer: bash examples/benchmarks/train.sh [FLAG...]
#   FLAG  of race.py train for all races
# The rows take the place of $CSV (default: train.csv beside this script). THREADS (2) as given.
# About half an hour on 2 CPU cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

. scripts/cpu.sh

csv=${CSV:-$here/train.csv}
rm -f "$csv.part"
race() {
    python "$here/race.py" train --csv "$csv.part" --threads "${THREADS:-2}" "$@"
}
race --size tiny --length 16 32 64 128 256 512 1024 --max-tokens 2048 --updates 2 "$@"
race --size iwslt --length 16 32 64 128 256 512 1024 --max-tokens 2048 --updates 1 "$@"
race --size base --length 16 64 256 --max-tokens 2048 --updates 1 "$@"
race --size tiny --length 32 256 --max-tokens 2048 --updates 2 --flags=--bf16 "$@"
race --size iwslt --length 32 256 --max-tokens 2048 --updates 1 --flags=--bf16 "$@"
race --size base --length 32 256 --max-tokens 2048 --updates 1 --flags=--bf16 "$@"
mv "$csv.part" "$csv"
