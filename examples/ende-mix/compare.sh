#!/usr/bin/env bash
# The whole comparison, for a machine with a GPU: bash examples/ende-mix/compare.sh [SIZE] [SEEDS]
# Train and score each family at one SIZE (default: base) with each of the SEEDS (default: "1 2 3"),
# in bf16. What a run that was stopped left is gone on from; what is done is not done again.
#   FAMILIES="resmlp_plus transformer resmlp"
#   UPDATES=20000
# DATA, TOKENS, OUT and RESULTS as for train.sh and evaluate.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/training.sh

size=${1:-base} seeds=${2:-1 2 3} updates=${UPDATES:-20000}
for seed in $seeds; do
    for family in ${FAMILIES:-resmlp_plus transformer resmlp}; do
        out=${OUT:-checkpoints/ende-mix}/$family-$size-seed$seed done=$out/evaluated-$updates
        [ -e "$done" ] && continue
        bash examples/ende-mix/train.sh "$family" "$size" "$seed" "$updates" --bf16
        expect_trained "$out" "$updates"
        bash examples/ende-mix/evaluate.sh "$family" "$size" "$seed"
        touch "$done"
    done
done
