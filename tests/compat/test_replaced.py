"""Replacements of functions of fairseq are described on the page, and in place."""

import re
from pkgutil import resolve_name

import fairseq
import pytest
from cli.commands import ROOT

from resmlp_mt.compat.patching import REPLACED, apply
from resmlp_mt.errors import UserError


def test_what_is_replaced_is_on_the_page_and_in_place():
    page = (ROOT / "docs/patches.md").read_text(encoding="utf-8")
    named = re.findall(r"`(fairseq\.[\w.\[\]]+)`", page)
    assert sorted(named) == sorted(target.replace(":", ".") for target in REPLACED)
    assert len(named) <= 15
    for target, ours in REPLACED.items():
        name, _, key = target.rstrip("]").partition("[")
        found = resolve_name(name)[key] if key else resolve_name(name)
        assert ours in (found, getattr(found, "ours", None)), target


def test_another_fairseq_is_refused(monkeypatch):
    apply()
    monkeypatch.setattr(fairseq, "__version__", "0.13.0")
    with pytest.raises(UserError, match=r"fairseq 0\.13\.0 .*pip install ve-fairseq==0\.12\.3"):
        apply()
