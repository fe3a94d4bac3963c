"""Real data, which the environment variable RESMLP_DATA says where to find."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("RESMLP_DATA") or os.devnull)


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where that folder is not among the data."""
    return pytest.mark.skipif(
        not (DATA / name).is_dir(), reason=f"RESMLP_DATA names no folder with {name}/"
    )
