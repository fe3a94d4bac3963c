"""Subword regularisation: the text stays, its subwords differ by epoch, and by nothing else."""

import pickle
import random

import pytest
import torch
from fairseq.data import Dictionary

from examples.lesson import write_lesson
from resmlp_mt.data.subwords import load_subwords, train_subwords
from resmlp_mt.tasks.subword_sampling import (
    SampledSubwords,
    cut_fully,
    draw_segmentation,
    drop_merges,
)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def prepared(request, tmp_path_factory):
    """Sentences as prepared, the dictionary, the subwords and the text."""
    folder = tmp_path_factory.mktemp("text")
    write_lesson(folder, train=60, valid=2, test=2)
    text = (folder / "train.en").read_text("utf-8").splitlines()
    # A symbol of one's own, at whose place no other piece begins, and a character in bytes.
    text = [f"PERSON {line}" for line in text]
    model = train_subwords(
        text, 346, request.param, user_defined_symbols=["PERSON"], byte_fallback=True
    )
    text = [f"{line} \U0001f600" for line in text]
    (folder / "spm.model").write_bytes(model)
    subwords = load_subwords(folder / "spm.model")
    dictionary = Dictionary()
    for i in range(3, len(subwords)):
        dictionary.add_symbol(subwords.id_to_piece(i))
    sentences = [encode(line, subwords, dictionary) for line in text]
    return sentences, dictionary, subwords, text


def encode(line, subwords, dictionary):
    pieces = subwords.encode(line, out_type=str)
    return torch.tensor([*map(dictionary.index, pieces), dictionary.eos()])


def decode(entries, subwords, dictionary):
    assert entries[-1] == dictionary.eos() and (entries[:-1] > dictionary.unk()).all()
    return subwords.decode([dictionary[i] for i in entries[:-1]])


def test_each_epoch_has_the_same_text_in_other_subwords(prepared):
    sentences, dictionary, subwords, text = prepared
    sampled = SampledSubwords(sentences, dictionary, subwords, 0.2, seed=1, longest=500)
    epochs = []
    for epoch in (1, 2):
        sampled.set_epoch(epoch)
        epochs.append([sampled[i] for i in range(len(text))])
        assert [decode(entries, subwords, dictionary) for entries in epochs[-1]] == text
        assert all(dictionary.index("PERSON") in entries for entries in epochs[-1])
    for a, b in ((epochs[0], epochs[1]), (epochs[0], sentences)):
        differing = sum(not torch.equal(x, y) for x, y in zip(a, b, strict=True))
        assert differing > len(text) / 2
    assert sum(map(len, epochs[0])) > sum(map(len, sentences))


def test_seed_epoch_and_place_alone_decide(prepared):
    sentences, dictionary, subwords, _ = prepared
    one, other, seeded = (
        SampledSubwords(sentences, dictionary, subwords, 0.2, seed=seed, longest=500)
        for seed in (1, 1, 2)
    )
    for each in (one, other, seeded):
        each.set_epoch(3)
    _ = one[5], one[7]  # what came before does not matter
    travelled = pickle.loads(pickle.dumps(other))  # to a worker that is no fork
    assert torch.equal(one[7], travelled[7])
    assert any(not torch.equal(one[i], seeded[i]) for i in range(20))


def test_a_worker_that_lives_on_hears_of_the_next_epoch(prepared):
    sentences, dictionary, subwords, _ = prepared
    sampled = SampledSubwords(sentences, dictionary, subwords, 0.2, seed=1, longest=500)
    loader = torch.utils.data.DataLoader(
        sampled, batch_size=None, num_workers=1, persistent_workers=True
    )
    for epoch in (1, 2):
        sampled.set_epoch(epoch)
        for here, there in zip(map(sampled.__getitem__, range(60)), loader, strict=True):
            assert torch.equal(here, there)


def test_what_grows_too_long_or_is_unknown_stays(prepared):
    sentences, dictionary, subwords, _ = prepared
    longest = max(map(len, sentences))
    sampled = SampledSubwords(sentences, dictionary, subwords, 0.5, seed=1, longest=longest)
    drawn = [sampled[i] for i in range(len(sentences))]
    assert max(map(len, drawn)) <= longest
    assert any(torch.equal(a, b) for a, b in zip(drawn, sentences, strict=True))
    unknown = torch.tensor([5, dictionary.unk(), 9, dictionary.eos()])
    assert torch.equal(
        SampledSubwords([unknown], dictionary, subwords, 0.5, seed=1, longest=9)[0], unknown
    )


def test_bpe_without_dropout_is_sentencepieces_and_with_it_as_fine_as_sentencepieces(tmp_path):
    write_lesson(tmp_path, train=400, valid=2, test=2)
    lines = (tmp_path / "train.de").read_text("utf-8").splitlines()
    lines += ["", "aa", "aaaaaaa", "eeeee eeee  ee"]
    (tmp_path / "spm.model").write_bytes(train_subwords(lines, 200, "bpe"))
    subwords = load_subwords(tmp_path / "spm.model")
    scores = {subwords.id_to_piece(i): subwords.get_score(i) for i in range(len(subwords))}
    draw = random.Random(1)
    counts = [0, 0]
    for line in lines:
        plain = subwords.encode(line, out_type=str)
        characters = cut_fully(line, subwords)
        assert characters == list("".join(plain))
        assert drop_merges(characters, scores, 0.0, draw) == plain
        assert drop_merges(characters, scores, 1.0, draw) == characters
        counts[0] += len(drop_merges(characters, scores, 0.3, draw))
        sampled = subwords.encode(line, enable_sampling=True, alpha=0.3, nbest_size=-1)
        counts[1] += len(sampled)
    assert counts[0] == pytest.approx(counts[1], rel=0.03)


def test_unigrams_are_drawn_by_their_probability(tmp_path):
    write_lesson(tmp_path, train=200, valid=2, test=2)
    lines = (tmp_path / "train.en").read_text("utf-8").splitlines()
    (tmp_path / "spm.model").write_bytes(train_subwords(lines, 90, "unigram"))
    subwords, draw = load_subwords(tmp_path / "spm.model"), random.Random(1)
    drawn = [draw_segmentation(lines[0], subwords, 1.0, draw) for _ in range(800)]
    best, second = subwords.nbest_encode(lines[0], nbest_size=2, out_type=str)
    odds = sum(map(subwords.get_score, map(subwords.piece_to_id, best)))
    odds -= sum(map(subwords.get_score, map(subwords.piece_to_id, second)))
    assert drawn.count(second) / drawn.count(best) == pytest.approx(2.718281828**-odds, rel=0.3)
    sharp = [draw_segmentation(lines[0], subwords, 100.0, draw) for _ in range(50)]
    assert sharp.count(best) == 50 or odds < 0.1
