"""A translator in several threads and processes, and what is left of it after its end."""

import gc
import multiprocessing
import os
import pickle
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import copy as copy_shallow
from copy import deepcopy as copy_deep
from pathlib import Path

import pytest
from PIL import Image

from resmlp_mt import Classifier, Translator
from resmlp_mt.export.writer import export_model

LINES = ["A man rides a bike.", "Two dogs play in the snow. A girl sings.", "", "A red car."]


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared") / "fast"
    export_model("multi30k-en-de", folder, int8=False)
    return folder


def test_threads_share_a_translator(fast):
    translator = Translator.from_pretrained(fast)

    def translate(i):
        found = translator.translate_nbest(LINES, attention=i % 2 == 0, beam=2)
        return [(best[0].text, len(best[0].attention)) for best in found]

    shown, plain = translate(0), translate(1)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(translate, range(8))) == [shown, plain] * 4


def test_processes_load_it_once_each_from_any_folder(fast, monkeypatch, tmp_path):
    monkeypatch.chdir(fast.parent)
    translator = Translator.from_pretrained(Path("fast"), threads=1)
    monkeypatch.chdir(tmp_path)
    expected = translator.translate(LINES)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(translator.translate, [LINES, LINES[:1]])) == [expected, expected[:1]]
    one, other = (pickle.loads(pickle.dumps(translator)) for _ in range(2))
    assert one.engine is other.engine is not translator.engine
    one.close()  # which the other does not notice
    assert other.threads == 1 and other.translate(LINES) == expected
    os.utime(fast / "export.json")
    assert other.engine is not pickle.loads(pickle.dumps(translator)).engine
    with pytest.raises(TypeError, match="only a Translator that from_pretrained has loaded"):
        pickle.dumps(Translator(translator.engine, translator.codec))


def test_a_shipped_classifier_is_pickled_by_its_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar10").mkdir()  # of data
    classifier, picture = Classifier.from_pretrained("cifar10", "cpu"), Image.new("L", (9, 9))
    other = pickle.loads(pickle.dumps(classifier))
    assert other.compute is not classifier.compute
    assert other.classify(picture) == classifier.classify(picture)


def test_copies_share_a_model_that_each_may_close(fast):
    translator = Translator.from_pretrained(fast)
    for copy in (copy_shallow(translator), copy_deep([translator])[0]):
        assert copy is not translator and copy.engine is translator.engine
        copy.close()
    assert translator.translate(LINES)


def test_a_search_ends_well_where_another_thread_closes_its_translator(fast, monkeypatch):
    translator = Translator.from_pretrained(fast, threads=1)
    expected, search = translator.translate(LINES), translator.engine.search

    def close_and_search(*asked):
        translator.close()
        return search(*asked)

    monkeypatch.setattr(translator.engine, "search", close_and_search)
    found = translator.translate_nbest(LINES * 2, buffer_size=len(LINES), batch_tokens=1)
    assert [next(found)[0].text for _ in LINES] == expected
    with pytest.raises(ValueError, match="the translator is closed"):
        next(found)


@pytest.mark.parametrize("options", [{}, dict(sampling=True), dict(words=[["Rad"]] * len(LINES))])
def test_closing_frees_its_arrays_without_the_garbage_collector(fast, options):
    translator = Translator.from_pretrained(fast, threads=2)
    gc.collect()
    gc.disable()
    try:
        with translator:
            translator.translate(LINES, batch_tokens=1, split_sentences=False, **options)
            weights = weakref.ref(translator.engine.decoder.output.weight)
        assert weights() is None
        with pytest.raises(ValueError, match="the translator is closed"):
            translator.translate(LINES)
    finally:
        gc.enable()
