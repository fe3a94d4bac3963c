"""A checkpoint and exports that older code wrote.

The checkpoint is from before models of images had a stem and stages. Both exports are of format 5,
with graphs beside their matrices. `said.json` is what the code of that time answered from the
checkpoint to the image below; what the translator says was noted when it was made.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resmlp_mt import Classifier, Translator
from resmlp_mt.errors import UserError

OLD = Path(__file__).parent / "written_before"


@pytest.mark.parametrize(("kind", "error"), [("checkpoint", 1e-5), ("classifier", 2e-3)])
def test_a_classifier_of_old_answers_as_it_did(kind, error):
    image = Image.fromarray((np.arange(9 * 12 * 3) % 251).astype(np.uint8).reshape(9, 12, 3))
    said = json.loads((OLD / "said.json").read_text())
    found = Classifier.from_pretrained(OLD / kind).scores([image])[0]
    np.testing.assert_allclose(found, said, atol=error)


@pytest.mark.parametrize(
    ("shortlist", "said"),
    [
        (True, [("eheheheheheh", -1.1943), ("teheheheheh", -1.3172)]),
        (False, [("eheheheheheh", -1.37), ("oooooo", -1.6246)]),
    ],
    ids=["shortlist", "preview"],
)
def test_a_translator_of_old_says_what_it_did(shortlist, said):
    translator = Translator.from_pretrained(OLD / "translator", threads=1)
    options = dict(beam=3, nbest=2, max_len_b=6, shortlist=shortlist)
    (found,) = translator.translate_nbest("A man rides a bike.", **options)
    texts, scores = zip(*said, strict=True)
    assert [hypothesis.text for hypothesis in found] == [*texts]
    np.testing.assert_allclose([hypothesis.score for hypothesis in found], scores, atol=0.02)


@pytest.mark.parametrize("format_", [2, 4, 99])
def test_formats_before_and_after_are_refused(format_, tmp_path):
    for kind, name in ((Classifier, "of_format_2"), (Translator, "translator")):
        folder = tmp_path / name
        shutil.copytree(OLD / name, folder)
        config = json.loads((folder / "export.json").read_text())
        (folder / "export.json").write_text(json.dumps(config | {"format": format_}))
        with pytest.raises(UserError, match=rf"format {format_}\b.*export the model again"):
            kind.from_pretrained(folder)
