#!/usr/bin/env bash
# SacreBLEU 2.6.0, a second reference that some lines have not: '' is not the same as None.
# The docstring of Metric._cache_references says that "a particular reference segment can be '' or
# None to allow the use of variable number of references". With '' the line has an empty reference,
# which is nearer in length to any short translation: the brevity penalty goes, and BLEU rises.
# One would guess the same score, and nrefs:var in the signature. None does that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sacrebleu==2.6.0 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
from sacrebleu.metrics import BLEU

reference = [f"The dog number {i} sleeps in the garden of the old house." for i in range(50)]
hypotheses = [f"The dog number {i} sleeps" for i in range(50)]
found = {}
for name, missing in {"alone": None, "None": None, "''": ""}.items():
    bleu = BLEU()
    references = [reference] if name == "alone" else [reference, reference[:1] + [missing] * 49]
    score = bleu.corpus_score(hypotheses, references).score
    found[name] = f"{score:.2f}", str(bleu.get_signature()).partition("|")[0]
print("BLEU with a second reference of one line:", found)
assert found["alone"][0] == found["None"][0] == "20.19", found
assert found["''"][0] == "100.00", found
assert (found["None"][1], found["''"][1]) == ("nrefs:var", "nrefs:2")
PYTHON
