#!/usr/bin/env bash
# Race trainings and searches on a GPU with fairseq's Transformer and CTranslate2, at base size:
#   bash examples/benchmarks/gpu.sh
# Rows go to gpu_train.csv and gpu_translate.csv beside this script, or in the folder $OUT. It stops
# after 570 seconds: a race that is not done in its time is given up, and the next one begins.
#   TOKENS=32768    target tokens of an update; fewer where the memory is too small
#   DEVICE=cpu      tries all of it with toys on the processor; OUT must say where its rows go
# Nothing is installed. What is missing is said, with status 2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
device=${DEVICE:-cuda} failed=0
case $device:${OUT:-} in
    cuda:* | cpu:?*) out=$(realpath -m "${OUT:-$here}") ;;
    *) echo "gpu.sh: DEVICE is cuda, or cpu with OUT=FOLDER for the rows of toys" >&2 && exit 2 ;;
esac
cd "$here/../.."
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONWARNINGS=ignore

python -c 'import importlib.util as u, sys
sys.exit(not all(map(u.find_spec, ("torch", "fairseq", "sentencepiece", "matplotlib"))))' || {
    python -m resmlp_mt.cli doctor >&2 || true # of an installation for exports it finds no fault
    echo "gpu.sh: torch, fairseq, sentencepiece or matplotlib is not installed" >&2
    exit 2
}
if [ "$device" = cuda ]; then
    python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
        echo "gpu.sh: torch finds no GPU; 'resmlp-mt doctor' shows what it was built for" >&2
        exit 2
    }
    train=(--max-tokens "${TOKENS:-32768}") search=() ways=('--optimizer adamw --torch-compile')
else
    toys=(--device cpu --size tiny --vocab-size 60 --rounds 1 --length 4)
    train=("${toys[@]}" --max-tokens 8 --seconds 0 --matrix 64)
    search=("${toys[@]}" --type float32 --sentences 2) ways=()
fi
mkdir -p "$out"

job=
trap '[ -z "$job" ] || kill "$job"; exit 130' INT TERM
within() { # SECONDS SCRIPT [FLAG...]
    # Not in the foreground, so that it and the processes of its rivals are ended together.
    timeout --kill-after 5 "$1" python "$here/$2" "${@:3}" & job=$!
    wait "$job" || {
        echo "gpu.sh: $2 ended with status $? (124: its $1 seconds were over)" >&2
        failed=1
    }
}
within 170 gpu_train.py "${train[@]}" --csv "$out/gpu_train.csv"
for options in ${ways[@]+"${ways[@]}"}; do
    within 260 gpu_train.py "${train[@]}" --options="$options" --csv "$out/gpu_train.csv"
done
within 110 gpu_translate.py ${search[@]+"${search[@]}"} --csv "$out/gpu_translate.csv"
[ ! -e "$out/gpu_train.csv" ] ||
    within 30 plot.py "$out/gpu_train.csv" --flags=--bf16 --out "$out/gpu_train.png"
exit "$failed"
