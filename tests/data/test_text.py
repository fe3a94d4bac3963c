import bz2
import codecs
import gzip
import lzma

import pytest

from resmlp_mt.data.reading import read_lines, read_pairs
from resmlp_mt.errors import UserError

# None of these but the newline ends a line.
ODD = "a\u2028b\x0cc\x85d\x1ee"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_lines_end_at_newlines_alone(tmp_path, suffix, pack):
    path = tmp_path / f"x.en{suffix}"
    path.write_bytes(pack(f"\ufeff{ODD}\r\n\nlast".encode()))
    assert list(read_lines(path)) == [ODD, "", "last"]


def test_pairs_are_those_of_the_two_files(tmp_path):
    (tmp_path / "x.en").write_text("a\nb\n")
    (tmp_path / "x.de.gz").write_bytes(gzip.compress(b"A\nB\n"))
    assert list(read_pairs(str(tmp_path / "x"), "en", "de")) == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(("en", "de"), [("a\n" * 3, "A\n" * 5), ("a\n" * 5, "A\n" * 3)])
def test_unequal_counts_are_both_named(tmp_path, en, de):
    (tmp_path / "x.en").write_text(en)
    (tmp_path / "x.de").write_text(de)
    with pytest.raises(UserError, match=f"{en.count(chr(10))} lines.*{de.count(chr(10))}"):
        list(read_pairs(str(tmp_path / "x"), "en", "de"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a\nb\xfcc\n", "x.en, line 2: not UTF-8 .byte 2 of the line is 0xfc.*LATIN1"),
        ("かな\n".encode("shift_jis"), "x.en, line 1: not UTF-8.*-f SHIFT_JIS"),
        (codecs.BOM_UTF16_LE + "ä\n".encode("utf-16-le"), "x.en: UTF-16, .*-f UTF-16 -t UTF-8"),
        (codecs.BOM_UTF16_BE + "ä\n".encode("utf-16-be"), "x.en: UTF-16, .*-f UTF-16 -t UTF-8"),
    ],
)
def test_another_encoding_is_named_with_what_converts_it(tmp_path, text, said):
    (tmp_path / "x.en").write_bytes(text)
    with pytest.raises(UserError, match=said):
        list(read_lines(tmp_path / "x.en"))


@pytest.mark.parametrize(
    ("pack", "said"),
    [
        (gzip.compress, "x.en: a gzip archive; .* in .gz"),
        (lzma.compress, "x.en: an xz archive; .* in .xz"),
        (bz2.compress, "x.en: a bzip2 archive"),
        (lambda text: b"\x28\xb5\x2f\xfd\x04\xd0" + text, "x.en: a Zstandard archive"),  # RFC 8878
    ],
)
def test_an_archive_that_is_not_unpacked_is_named(tmp_path, pack, said):
    text = "".join(f"line {i} ä\n" for i in range(2000)).encode()
    (tmp_path / "x.en").write_bytes(pack(text))
    with pytest.raises(UserError, match=said):
        list(read_lines(tmp_path / "x.en"))
