"""Other ways to go on at a place, against the probabilities of the model."""

import pytest
import torch

from resmlp_mt import Translator
from resmlp_mt.checkpoints.loading import load_translator, read_checkpoint
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.translating.alternatives import find_alternatives

TEXT = "A man rides a bike."
CHECKPOINT = PRETRAINED / "multi30k-en-de" / "model.pt"


def find_last(*asked, **options):
    """The alternatives of one segment, after the batches of their search."""
    *batches, found = find_alternatives(*asked, **options)
    assert not any(batches)
    return found


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained(CHECKPOINT)


@pytest.mark.parametrize("prefix", ["", "Ein Mann ", "Ein Mann", "Ein Mann fährt "])
def test_they_are_the_likeliest_subwords_each_completed(translator, prefix):
    count, codec = 4, translator.codec
    model = load_translator(*read_checkpoint(CHECKPOINT)).model
    options = SearchOptions(beam=5, nbest=count)
    segments = translator.split(TEXT)
    found = find_last(translator, segments, options, prefix, attention=True)
    begun = codec.encode_target(prefix)
    source = codec.encode(segments[0].pieces)
    told = torch.tensor([[codec.target_dictionary.eos(), *begun]])
    with torch.no_grad():
        log_p = model(torch.from_numpy(source)[None], None, told)[0][0, -1].log_softmax(-1)
    log_p[[codec.target_dictionary.unk(), codec.target_dictionary.eos()]] = -torch.inf
    names = codec.name_target(log_p.argsort(descending=True)[: 2 * count].numpy())
    if prefix.endswith(" "):
        names = [name for name in names if not name[0].isalnum()]
    completed = {}
    for name in names:
        said = codec.target_subwords.decode([*codec.name_target(begun), name])
        (best,) = translator.translate_nbest([TEXT], beam=5, prefix=said)
        completed[best[0].text] = best[0].score
    ranked = sorted(completed, key=completed.get, reverse=True)
    assert [hypothesis.text for hypothesis in found] == ranked[: len(found)]
    assert [h.score for h in found] == pytest.approx([completed[h.text] for h in found], abs=1e-4)
    assert len(found) == count and all(h.text.startswith(prefix.strip()) for h in found)
    assert all(len(h.attention) == 1 for h in found)


@pytest.mark.parametrize("most", [200, 7])
def test_where_nothing_fits_behind_the_prefix_it_is_all_there_is(translator, most):
    prefix = "Mann " * min(most, translator.engine.target_positions - 1)
    options = SearchOptions(nbest=5, max_len_b=most)
    found = find_last(translator, translator.split(TEXT), options, prefix)
    assert [hypothesis.text for hypothesis in found] == [prefix.strip()]


@pytest.mark.parametrize("prefix", ["Das Hotel ", "Das Hotel heißt 東京"])
def test_words_that_the_model_cannot_read_are_kept(prefix):
    translator = Translator.from_pretrained("en-de")
    segments = translator.split("The hotel is called 東京.", begun=True)
    found = find_last(translator, segments, SearchOptions(nbest=3), prefix)
    assert len(found) == 3 and all(h.text.startswith(prefix) for h in found)
    assert found[0].text.count("東京") == 1
