import threading
from types import SimpleNamespace

from resmlp_mt.inference.translator import Hypothesis


class Held:
    """A translator that says a line backwards, once it is let go."""

    codec = SimpleNamespace(target_language="en")

    def __init__(self):
        self.let_go, self.batches, self.at_work = threading.Event(), [], threading.Semaphore(0)

    def translate_nbest(self, lines, beam, nbest, lenpen, attention, buffer_size, split_sentences):
        self.batches.append((list(lines), nbest))
        self.at_work.release()
        assert self.let_go.wait(60)
        if "poison" in lines:
            raise ValueError("poison")
        return [[Hypothesis(line[::-1], 0.0, [line] * attention)] * nbest for line in lines]

    def split(self, text, split_sentences=None):
        return text.split("|")
