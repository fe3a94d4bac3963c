#!/usr/bin/env bash
# SacreBLEU 2.6.0, --paired-ar: two systems that differ in one line of 200 have p = 0.0001, so a
# difference in one sentence is "significant".
# One would guess p = 1: whichever way that line is exchanged, the difference is as large. The
# exact test has 2 / 2^k for k such lines: 1, 0.5, 0.25, 0.125. SacreBLEU counts the draws that
# differ by more than the systems do, not by as much (significance.py, _compute_p_value).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sacrebleu==2.6.0 numpy==2.3.5
cd "$folder"
for i in $(seq 200); do echo "The dog number $i sleeps in the garden of the old house."; done >reference
cp reference same
found=
for k in 1 2 3 4; do
    awk -v k="$k" '{ print NR <= k ? "Something else." : $0 }' reference >other
    found+=$(venv/bin/sacrebleu reference -i same other --paired-ar -f json -b 2>/dev/null |
        venv/bin/python -c "
import json, sys
print(f\"{json.load(sys.stdin)[1]['BLEU']['p_value']:.4f}\")")
    found+=" "
done
echo "p of systems that differ in 1, 2, 3, 4 of 200 lines: $found"
[ "$found" = "0.0001 0.0001 0.0001 0.0001 " ]
