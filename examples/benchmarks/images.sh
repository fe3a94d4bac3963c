#!/usr/bin/env bash
# Race classifiers with timm's: bash examples/benchmarks/images.sh [FLAG...]
#   FLAG  of race.py images for all races
# Needs timm with a torchvision that fits torch, and g++ for torch.compile. The rows take the place
# of $CSV (default: images.csv beside this script). They are of each number of threads in $THREADS
# (default: 1 2).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

csv=${CSV:-$here/images.csv}
rm -f "$csv.part"
for arch in resmlp_s12 resmlp_s24; do
    for threads in ${THREADS:-1 2}; do
        python "$here/race.py" images --timm --arch "$arch" --threads "$threads" --rounds 7 --images 32 \
            --csv "$csv.part" "$@"
    done
done
python "$here/race.py" images --timm --arch bit_r50x1 --batch-size 1 16 --images 16 --threads 1 \
    --rounds 3 --csv "$csv.part" "$@"
mv "$csv.part" "$csv"
