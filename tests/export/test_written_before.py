"""A classifier and its export, from before models of images had a stem and stages; a translator's.

`said.json` is what the code of that time answered, from both, to the image below.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from resmlp_mt import Classifier, Translator

OLD = Path(__file__).parent / "written_before"


@pytest.mark.parametrize("kind", ["checkpoint", "export"])
def test_a_classifier_of_old_answers_as_it_did(kind):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    image = Image.fromarray((np.arange(9 * 12 * 3) % 251).astype(np.uint8).reshape(9, 12, 3))
    said = json.loads((OLD / "said.json").read_text())
    found = Classifier.from_pretrained(OLD / kind).scores([image])[0]
    np.testing.assert_allclose(found, said, atol=1e-5)


@pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(), reason="it was recorded in 8 bits with VNNI"
)
def test_a_translator_of_old_says_what_it_did():
    """Its two graphs hold all weights, the embedding three times."""
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    translator = Translator.from_pretrained(OLD / "translator")
    (found,) = translator.translate_nbest("A man rides a bike.", beam=3, nbest=2, max_len_b=6)
    assert [hypothesis.text for hypothesis in found] == ["in in in in in in", "in in in in ing"]
    scores = [hypothesis.score for hypothesis in found]
    np.testing.assert_allclose(scores, [-1.8582, -2.2783], atol=0.01)
