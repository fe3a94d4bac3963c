"""fairseq for the machines that ve-fairseq has no wheel for: python fairseq_wheel.py [FOLDER]

Takes the published wheel, known by its hash, through pip, and writes it anew without the files that
are compiled, as a wheel for any Python and machine. Prints where that lies. `batch_by_size.py`
stands for the one compiled module that our trainings need; that of BLEU says what to use in its
place. One function is mended, without which fairseq cannot be imported on Python 3.14. All else is
as published.

It runs before anything is installed, so it imports nothing of ours.
"""

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION = "0.12.3"
# Of the wheel for Python 3.11 on x86-64 Linux.
SHA256 = "5e84da7a92db08aae7f9cc3d155d4574d915fe1959dc1e041d514b6ef7bc000a"
_NAME = f"ve_fairseq-{VERSION}-py3-none-any.whl"
_INFO = f"ve_fairseq-{VERSION}.dist-info"
_BATCHES = Path(__file__).with_name("batch_by_size.py")
_NO_BLEU = b"""raise NotImplementedError(
    "fairseq's libbleu is compiled code, which there is none of for this machine: give --scoring "
    "sacrebleu, or use the command sacrebleu in the place of fairseq-score"
)
"""
# Optional[int] prints as "int | None" from Python 3.14 on, and fairseq looks at what it prints.
_TYPES = "fairseq/dataclass/utils.py"
_READ = b"    typestring = str(field_type)\n"
_MENDED = b"""\
    typestring = str(field_type)
    if typestring.endswith(" | None"):
        return field_type.__args__[0]
"""


def download(folder: Path) -> Path:
    """The published wheel, in a folder. pip asks the indexes that it is configured for."""
    asked = folder / "asked.txt"
    asked.write_text(f"ve-fairseq=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11"]
    command += ["--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_17_x86_64"]
    command += ["--platform", "manylinux_2_28_x86_64", "--platform", "linux_x86_64"]
    subprocess.run([*command, "--dest", folder, "--requirement", asked], check=True, stdout=2)
    (wheel,) = folder.glob("*.whl")
    return wheel


def strip(wheel: Path, folder: Path) -> Path:
    """Write a wheel for every machine into a folder, of one that has compiled files.

    Returns:
        Where it lies. The same wheel gives the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made, records = folder / _NAME, []
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:

        def add(name: str, content: bytes) -> None:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            records.append(f"{name},sha256={digest.decode()},{len(content)}")
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

        for name in old.namelist():
            if name.endswith(("/", ".so")) or name == f"{_INFO}/RECORD":
                continue
            content = old.read(name)
            if name == f"{_INFO}/WHEEL":
                lines = content.decode().splitlines()
                kept = [line for line in lines if not line.startswith(("Tag:", "Root-Is-Purelib"))]
                content = "\n".join([*kept, "Root-Is-Purelib: true", "Tag: py3-none-any", ""])
                content = content.encode()
            elif name == _TYPES:
                assert content.count(_READ) == 1, "another fairseq"
                content = content.replace(_READ, _MENDED)
            add(name, content)
        add("fairseq/data/data_utils_fast.py", _BATCHES.read_bytes())
        add("fairseq/libbleu.py", _NO_BLEU)
        records.append(f"{_INFO}/RECORD,,")
        new.writestr(zipfile.ZipInfo(f"{_INFO}/RECORD"), "\n".join(records) + "\n")
    return made


def main() -> None:
    """Make it in the folder that is named, or in this one."""
    with tempfile.TemporaryDirectory() as folder:
        print(strip(download(Path(folder)), Path(*sys.argv[1:2] or ["."]).resolve()))


if __name__ == "__main__":
    main()
