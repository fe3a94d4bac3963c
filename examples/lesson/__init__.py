"""A made-up English-German corpus: a language lesson of words to reorder and words that agree.

A small grammar writes both sides of a sentence from the same constituents, so the German is
correct and the English determines it.
"""

from examples.lesson.sentences import sentence_pairs, write_lesson

__all__ = ["sentence_pairs", "write_lesson"]
