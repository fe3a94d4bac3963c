"""Impossible command lines: each is refused by one message that names the flag, and makes nothing.

Fixtures stand in braces, and the words behind the arrow are in the message.
"""

import shlex

import pytest
from cli.commands import refuse

FILES = {
    "terms": "dog\tHund\n",
    "ref.de": "Der Hund sieht die Katze.\nEr liest.\n",
    "hyp.de": "Der Hund sieht eine Katze.\nEr liest.\n",
    "short.de": "Er liest ein Buch.\n",
    "empty.de": "",
    "other/thesis.txt": "precious",
}
PREPARE = "prepare -s en -t de --train {raw}/train --valid {raw}/valid --out out --workers 1"
REFUSED = rf"""
translate --model {{packed}} x --nbest 3 --beam 2 => --nbest 3
translate --model {{packed}} x --beam 0 => --beam 0
translate --model {{packed}} x --sampling-topk 3 => --sampling-topk 3
translate --model {{packed}} x --sampling --beam 3 => --beam 3
translate --model {{packed}} x --prefix-column 1 => --prefix-column
translate --model {{packed}} x --prefix 'K{chr(0xDCE4)}se ☃' => the model cannot say
translate --model {{packed}} x --prefix 'the ☃' => line 1: 'the ☃'
translate --model {{packed}} x --prefix '{"der " * 60}' => subwords
translate --model {{packed}} x --model multi30k-en-de => its languages
translate --model {{packed}} x --glossary terms --sampling => --glossary
translate --model {{packed}} x --batch-tokens 0 => --batch-tokens
translate --model {{packed}} x --threads 4097 => --threads
translate --model {{packed}} x --device abacus => device abacus
translate --model {{packed}} x --resume => --resume
translate --model {{packed}} x --field 0 => --field
translate --model {{packed}} x --field text --into 2 => --into 2
translate --model {{packed}} x --into de => --into
translate --model {{packed}} x --field 1 --score-into 4 => --score-into 4
translate --model {{packed}} x --tsv-column 1 --json => --tsv-column
translate --model {{packed}} x --shard 1/2 => --shard
translate --model {{packed}} --shard 3/2 --input terms => --shard 3/2
translate --model {{packed}} --shard 1/2 --input - => --shard
translate --model {{classifier}} x => resmlp-mt classify
score --ref ref.de short.de => short.de
score --ref ref.de empty.de => empty.de
score --ref ref.de - - => standard input
score --ref ref.de hyp.de --paired-bs => --paired-bs
score --ref ref.de hyp.de ref.de --paired-ar --paired-bs => --paired-bs
score --ref ref.de hyp.de ref.de --paired-bs --seed 0 => --seed
score --ref ref.de hyp.de ref.de --paired-bs --paired-bs-n 0 => --paired-bs-n
score --ref ref.de hyp.de --seed 9 => --seed
score --ref ref.de hyp.de --paired-bs-n 9 => --paired-bs-n
score --ref short.de short.de short.de --paired-bs => --paired-bs
score hyp.de => --ref
score hyp.de --source hyp.de => --source
score hyp.de --model en-de => --source
score hyp.de --model en-de --source ref.de --ref ref.de => --ref
score hyp.de --model en-de --source ref.de --paired-ar => --paired-ar
score hyp.de --model en-de --source short.de => short.de ends before line 2
export {{packed}} --out other => thesis.txt
export none --out out => none
export {{packed}} --out out --shortlist {{raw}}/train.en {{raw}}/test.de => test.de
export {{packed}} --out out --preview {{raw}}/train.en {{raw}}/test.de => test.de
export {{packed}} --out out --shortlist terms terms --shortlist-best 0 => --shortlist-best
export {{packed}} --out out --shortlist-first 9 => --shortlist-first
export {{packed}} --out out --weight-bits 6 => --int8
export {{packed}} --out out --int8 --weight-bits 3 => 4 to 8 bits
export {{classifier}} --out out --shortlist {{raw}}/train.en {{raw}}/train.de => --shortlist
export {{classifier}} --out out --preview {{raw}}/train.en {{raw}}/train.de => --preview
average {{trained}} --last 9 --out x.pt => 3 of epochs, but not 9
average {{trained}} --out x.pt => --last N or --best N
average {{trained}} --best 4 --out x.pt => 3 checkpoints with a validation score, not 4
average other --last 1 --out x.pt => no numbered checkpoints
average none.pt --out x.pt => none.pt
classify nix {{pictures}}/val => nix
classify {{classifier}} nix.png => nix.png
classify {{classifier}} other => no image in it
classify {{classifier}} '' => no image in it
classify {{classifier}} {{pictures}}/val --topk 0 => --topk
classify {{classifier}} {{pictures}}/val --device abacus => device abacus
classify multi30k-en-de {{pictures}}/val => not a classifier
study confusion multi30k-en-de {{pictures}}/val => not a classifier
study confusion cifar10 other => other
study confusion cifar10 {{pictures}}/val --worst 0 => --worst
study confusion cifar10 {{pictures}}/val --out x.tsv => --out
study confusion cifar10 {{pictures}}/val --out {{pictures}}/val/over/0.png => read and written
study mixing multi30k-en-de --out a.png --layers 0,4 => --layers
study mixing multi30k-en-de --out a.png --layers all => --layers
study mixing multi30k-en-de --out a.png --positions 0 => --positions
study mixing multi30k-en-de --out a.png --patches 4 => --patches
study sparsity multi30k-en-de --threshold 5 => --threshold
study sparsity multi30k-en-de --out a.png --csv a.png => --csv
study pruning multi30k-en-de --threshold 0 => --threshold
study probe {{classifier}} {{pictures}} --knn 0 => --knn
study probe {{classifier}} {{pictures}} --knn 97 => --knn
study probe {{classifier}} {{pictures}} --temperature 0 => --temperature
study probe {{classifier}} {{pictures}} --linear --temperature 1 => --temperature
study probe {{classifier}} {{pictures}} --batch-size 0 => --batch-size
study probe {{classifier}} {{pictures}} --split test => no test images
study probe {{classifier}} {{pictures}} --csv other => other
study probe {{classifier}} other => no train images
study probe multi30k-en-de {{pictures}} => not for images
study probe none.pt {{pictures}} => none.pt
{PREPARE} --vocab-size 50000 => --vocab-size
{PREPARE} --max-ratio nan => --max-ratio
{PREPARE} --subword-sentences 0 => --subword-sentences
{PREPARE} --workers 0 => --workers
{PREPARE} --character-coverage 0.5 => --character-coverage
{PREPARE} --user-defined-symbols 'x,<pad>' => --user-defined-symbols
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_it_is_refused(line, trained, packed, classifier, pictures, raw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    places = dict(trained=trained, packed=packed, classifier=classifier)
    places |= dict(pictures=pictures, raw=raw)
    command, _, said = line.partition(" => ")
    assert said in refuse(*(word.format(**places) for word in shlex.split(command)))
    assert sorted(tmp_path.rglob("*")) == before
