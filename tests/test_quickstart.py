"""The quick start as a user runs it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]


def test_quickstart_reaches_90_bleu_and_reuses_what_is_there(tmp_path):
    project = tmp_path / "project"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, tracked):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    # The environment of the tests stands for the installation, which made it.
    (project / ".venv").symlink_to(Path(sys.prefix))
    environment = os.environ | {"PYTHONPATH": str(project)}
    results = []
    for _ in range(2):
        command = ["bash", "scripts/quickstart.sh"]
        result = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr[-4000:]
        made = (project / "quickstart").rglob("*")
        # Drawn anew each time.
        times = {p: p.stat().st_mtime_ns for p in made if p.is_file() and p.name != "loss.png"}
        results.append((result.stdout, times))
    (first, made), (again, left) = results
    score = float(re.search(r"BLEU = ([\d.]+)", first)[1])
    assert score >= 90
    assert first.count("translation  ") == 10 and first.count("reference  ") == 10
    assert Image.open(project / "quickstart" / "loss.png").size[0] > 600
    assert first.endswith(again) and again.startswith("      source")
    assert left == made and len(made) > 10
    assert "--distributed-world-size 1 " in (project / "scripts/quickstart.sh").read_text()
