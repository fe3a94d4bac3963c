"""Halves of surrogate pairs, which strings of Python may hold and no text file."""


def mend_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs; U+FFFD takes the place of a half alone.

    Halves come from JSON escapes and from file names; no text file can hold one.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
