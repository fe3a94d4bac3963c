#!/usr/bin/env bash
# The data of all stages: bash examples/convergence/prepare.sh --raw DIR [FLAG...]
#   --raw DIR  holds the folders multi30k, ende-mix and wmt, in the forms that examples/multi30k and
#              examples/ende-mix take
#   FLAG       further ones go to examples/ende-mix/prepare.py
# Makes four folders in data-bin, or in $OUT. What is there already is not made again.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: prepare.sh --raw DIR [FLAG...]"
[ "${1:-}" = --raw ] || { echo "$usage" >&2; exit 2; }
raw=${2:?$usage} out=${OUT:-data-bin}

[ -e "$out/multi30k" ] ||
    DATA=$out/multi30k bash examples/multi30k/prepare.sh --raw "$raw/multi30k"

mix() { # NAME SOURCE VOCABULARY FLAG...
    # prepare.py writes this last. A folder without it was stopped half way.
    [ ! -e "$out/$1/raw/test2.domain" ] || return 0
    rm -rf "${out:?}/$1"
    python examples/ende-mix/prepare.py --raw "$raw/ende-mix" \
        --news "$raw/wmt/newstest2014" --out "$out/$1" --source-lang "$2" --vocab-size "$3" \
        --remove-identical --remove-wrong-language --balance 1.5 --careless 0.2 "${@:4}"
}
mix ende-mix-8k en 8000 "${@:3}"
mix ende-mix-16k en 16000 "${@:3}"
mix deen-mix-8k de 8000 "${@:3}"
