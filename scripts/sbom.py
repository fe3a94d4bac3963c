"""Write sbom.cdx.json: what requirements.lock installs, as a bill of materials (CycloneDX).

    pip install cyclonedx-bom
    python scripts/sbom.py    # after scripts/lock.py, and with each new version

cyclonedx-py reads the lock: each package with its version, its purl and the sha256 of its files.
The same lock always gives the same file.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "sbom.cdx.json"


def main() -> int:
    """Write the file."""
    text = (ROOT / "resmlp_mt" / "__init__.py").read_text("utf-8")
    version = re.search(r'__version__ = "(.+)"', text)[1]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as project:
        project.write(f'[project]\nname = "resmlp_mt"\nversion = "{version}"\nlicense = "MIT"\n')
        project.flush()
        command = [sys.executable, "-m", "cyclonedx_py", "requirements", "requirements.lock"]
        command += ["--pyproject", project.name, "--mc-type", "library", "--output-reproducible"]
        done = subprocess.run([*command, "--output-file", str(OUT)], cwd=ROOT)
    if done.returncode:
        print("sbom.py: no bill was written; is cyclonedx-bom installed?", file=sys.stderr)
    return 2 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
