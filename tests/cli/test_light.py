"""Exported models where torch and fairseq are not imported, or not installed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from cli.bare import APART, Bare, build_wheel
from cli.commands import ROOT, assert_refused, run
from packaging.requirements import Requirement

from resmlp_mt.cli import passthrough
from resmlp_mt.cli.parser import COMMANDS
from resmlp_mt.cli.study import STUDIES as ALL_STUDIES

CHECKPOINT = ROOT / "resmlp_mt" / "pretrained" / "multi30k-en-de" / "model.pt"
TRANSLATOR = "multi30k-en-de"  # as an export
TEXT = "A man rides a bike. Two dogs play in the snow."
# What translating and classifying with exports cannot do without.
PACKAGES = tuple("numpy sentencepiece pillow sentencex regex babel packaging tqdm".split())
# Plausible arguments of each command. MODEL is one that ships; what begins with "a." is a file.
ASKED = {
    "prepare": "--source-lang en --target-lang de --train a --valid a --test a --out data",
    "translate": "--model MODEL A",
    "classify": "MODEL a.png",
    "score": "--ref a.de a.de",
    "average": "a.pt --out b.pt",
    "pack": "multi30k-en-de --out packed",
    "serve": "MODEL --port 0",
    "export": "multi30k-en-de --out exported",
    "study confusion": "MODEL pictures --out b.png",
    "study probe": "MODEL pictures --knn 1",
    "import-weights": "a.pt --arch resmlp_s12 --out weights",
    "export-weights": "cifar10 --format timm --out b.pt",
    "study curves": "a.log --out b.png",
    "study mixing": "multi30k-en-de --out b.png",
    "study sparsity": "multi30k-en-de",
    "study pruning": "multi30k-en-de --input a.en --reference a.de",
    "doctor": "",
} | dict.fromkeys(passthrough.PROGRAMS, "data-bin/x")
STUDIES = [f"study {name}" for name in ALL_STUDIES]
# sitecustomize.py, which Python imports before all else.
GUARD = """
import sys
class Guard:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "fairseq"):
            raise AssertionError(f"{name} is imported")
sys.meta_path.insert(0, Guard())
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The environment of a process where importing torch or fairseq is an error."""
    folder = tmp_path_factory.mktemp("guard")
    (folder / "sitecustomize.py").write_text(GUARD)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def test_models_that_ship_translate_and_classify_as_with_torch(guarded, picture, tmp_path):
    shutil.copytree(picture.parent, tmp_path / "frog")
    for command in (
        ["translate", "--model", TRANSLATOR, "--nbest", 3, TEXT],
        ["classify", "cifar10", picture],
        ["study", "confusion", "cifar10", tmp_path],
    ):
        found = run("resmlp-mt", *command, env=guarded)
        assert found.stdout == run("resmlp-mt", *command).stdout != ""
    command = ["resmlp-mt", "translate", "--model", TRANSLATOR, "A man rides a bike."]
    for kind in ("", "plain"):
        done = run(*command, env=guarded | {"RESMLP_CPU_ISA": kind})
        assert done.stdout == "Ein Mann fährt Fahrrad.\n"


def test_where_there_is_no_unix_an_export_translates_in_python(tmp_path):
    """The command names WSL there."""
    blocked = "import sys; sys.modules |= dict.fromkeys(['fcntl', 'resource', 'termios', 'pwd'])"
    (tmp_path / "sitecustomize.py").write_text(blocked)
    code = """if True:
        import sys, resmlp_mt.files.claim, resmlp_mt.serving.app
        from resmlp_mt import Translator
        from resmlp_mt.cli import main
        print(Translator.from_pretrained("multi30k-en-de").translate("A man rides a bike."))
        sys.platform = "win32"
        sys.exit(main())
    """
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = run("python", "-c", code, env=environment, own=True, check=False)
    assert done.stdout == "Ein Mann fährt Fahrrad.\n"
    assert_refused(done, "in WSL: wsl --install")


@pytest.fixture(scope="module")
def picture(pictures):
    return next((pictures / "val").rglob("*.png"))


def test_the_guard_sees_torch(guarded):
    command = ["resmlp-mt", "translate", "--model", CHECKPOINT, "a"]
    done = run(*command, check=False, env=guarded)
    assert "AssertionError: torch is imported" in done.stderr


def test_no_help_imports_torch(guarded):
    code = """if True:
        import sys
        from resmlp_mt.cli import main
        for command in sys.argv[1:]:
            sys.argv = ["resmlp-mt", *command.split(), "--help"]
            try:
                main()
            except SystemExit as end:
                assert end.code == 0
    """
    done = run("python", "-c", code, "", *COMMANDS, *STUDIES, env=guarded)
    assert done.stdout.count("usage: ") == 1 + len([*COMMANDS, *STUDIES])
    whole = done.stdout.split("usage: ")[1].split()
    assert {*COMMANDS, *passthrough.PROGRAMS} <= {*whole}


def test_what_needs_fairseq_says_so(small, tmp_path):
    sample = ["translate", "--model", TRANSLATOR, "--sampling", "a"]
    assert_refused(small(*sample), "more than a plain beam search", "torch", "not installed")
    (tmp_path / "terms").write_text("a man\tein Mann\n")
    held = [*sample[:3], "--glossary", tmp_path / "terms"]
    assert "ein Mann" in small(*held, "A man.").stdout  # by a name for it
    # Not where letters are decomposed, so that no place of the term is known.
    assert_refused(small(*held, "A man, a\u0308."), "a glossary", "torch", "not installed")
    assert_refused(small("translate", "--model", CHECKPOINT, "a"), "torch", "not installed")
    assert_refused(small("train", "data-bin/x"), "fairseq is not installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    kept = (ROOT / ".dockerignore").read_text().split()
    for name in (word[1:] for word in kept if word.startswith("!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "kept" / name)
        else:
            (folder / "kept").mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / "kept")
    return build_wheel(folder / "kept", folder / "built")


@pytest.fixture(scope="module")
def small(wheel, tmp_path_factory):
    """small(*words): `resmlp-mt` in an environment that has the wheel and few packages."""
    bare = Bare(tmp_path_factory.mktemp("small") / "venv")
    bare.link(list(PACKAGES))
    bare.install(wheel)
    return lambda *words: bare.run("resmlp-mt", *words)


def test_the_wheel_has_all_of_the_package_and_its_size_is_stated(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("resmlp_mt/")}
        about = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        said = archive.read(about["METADATA"]).decode()
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "resmlp_mt"]
    known = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    known = {name for name in known.stdout.split() if (ROOT / name).is_file()}
    compiled = {name for name in packed if name.startswith("resmlp_mt/native/kernels")}
    assert packed - compiled == {name for name in known if not name.endswith((".c", ".pt"))}
    assert len(compiled) == (shutil.which("cc") is not None)
    assert "resmlp_mt/py.typed" in packed and "LICENSE" in about
    text = " ".join((ROOT / "docs" / "export.md").read_text("utf-8").split())
    # Compilers differ by some hundred kilobytes.
    (said_size,) = re.findall(r"The wheel has ([\d.]+) MB", text)
    assert abs(wheel.stat().st_size / 10**6 - float(said_size)) < 0.5
    extras = set(re.findall("^Provides-Extra: (.*)$", said, re.M))
    table = (ROOT / "docs" / "supply-chain.md").read_text("utf-8")
    assert extras and extras == set(re.findall(r"^\| `\[(\w+)\]` \|", table, re.M))


def test_the_wheel_with_all_packages_needs_no_checkout(wheel, tmp_path):
    bare = Bare(tmp_path / "large")
    bare.install(wheel)
    # Other packages are found where they are. The checkout is not: only their .pth files name it.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (bare.site / "others.pth").write_text("\n".join(others))
    done = bare.run("resmlp-mt", "translate", "--model", "multi30k-en-de", TEXT)
    same = run("resmlp-mt", "translate", "--model", "multi30k-en-de", TEXT)
    assert done.stdout == same.stdout != "", done.stderr


@pytest.mark.parametrize("command", ASKED)
def test_a_command_works_with_few_packages_or_says_what_it_lacks(command, small, picture, tmp_path):
    (tmp_path / "a.en").write_text("A dog.\n")
    (tmp_path / "a.de").write_text("Ein Hund.\n")
    (tmp_path / "a.log").write_text('{"nll_loss": "3", "num_updates": "1"}\n')
    shutil.copy(picture, tmp_path / "a.png")
    model = "cifar10" if command == "classify" else TRANSLATOR
    given = [tmp_path / x if x.startswith("a.") else x for x in ASKED[command].split()]
    done = small(*command.split(), *(model if x == "MODEL" else x for x in given))
    if command in ("translate", "classify", "doctor"):
        assert done.returncode == 0, done.stderr
    else:
        assert_refused(done)
        said = rf"resmlp-mt {command}: .*is not installed: pip install .*\n"
        assert re.fullmatch(said, done.stderr)


def test_an_installation_for_exports_is_sound_and_says_how_to_install_more(small, wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        said = archive.read(name).decode()
    asked = [Requirement(line) for line in re.findall("^Requires-Dist: (.*)$", said, re.M)]
    core = {r.name for r in asked if not r.marker}
    assert core >= {*PACKAGES} and not core & {"torch", "ve-fairseq", "safetensors"}
    done = small("doctor")
    assert done.returncode == 0 and "no problem found" in done.stdout, done.stdout
    rows = {line[:17].rstrip(): line[18:] for line in done.stdout.splitlines()}
    assert rows["installation"] == "for exported models: neither torch nor fairseq is installed"
    extras = set(re.findall("^Provides-Extra: (.*)$", said, re.M)) - {"dev", "export"}
    for extra in extras:
        wanted = [r for r in asked if r.marker and r.marker.evaluate({"extra": extra})]
        command = rows[f"extra [{extra}]"].partition(": ")[2]
        assert shlex.split(command) == ["pip", "install", *(str(r).split(";")[0] for r in wanted)]
        for name in {r.name for r in wanted} - {*PACKAGES}:
            assert rows[name].startswith("not installed; of the extra ")


def test_without_a_compiler_the_wheel_says_what_to_install(tmp_path):
    wheel = build_wheel(ROOT, tmp_path / "wheel", CC="/bin/false")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
    bare = Bare(tmp_path / "venv")
    bare.link(list(PACKAGES))
    bare.install(wheel)
    done = bare.run("resmlp-mt", "translate", "--model", TRANSLATOR, TEXT)
    assert_refused(done, "compiled code", "wheel", "ziglang")
    done = bare.run("resmlp-mt", "doctor")
    assert done.returncode == 1 and "PROBLEM: exports need the compiled code" in done.stdout


def read_containerfile() -> list[tuple[str, str]]:
    """Its instructions, in order."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_steps_of_the_containerfile_make_a_service(wheel, tmp_path):
    """Run in a bare environment: packages are linked where it installs them from the registry."""
    steps = read_containerfile()
    ran = [shlex.split(rest) for word, rest in steps if word == "RUN"]
    # The first image has a C compiler, and the second is small.
    images = [rest.split()[0].rpartition(":")[2] for word, rest in steps if word == "FROM"]
    assert images == ["3.11", "3.11-slim"]
    assert [words[:2] for words in ran] == [["pip", "wheel"], *[["pip", "install"]] * 2]
    assert ran[0][2:] == ["--no-deps", "--wheel-dir", "/wheel", "/source"]
    bare = Bare(tmp_path / "venv")
    options, packages = ran[1][2:5], ran[1][5:]
    assert options == ["--no-cache-dir", "--constraint", "/constraints.txt"]
    bare.link(packages)
    assert ran[2][2:] == ["--no-cache-dir", "--no-deps", "/wheel/*.whl"]
    bare.install(wheel)
    assert not [name for name in ("torch", "fairseq") if (bare.site / name).exists()]
    (entry,) = (json.loads(rest) for word, rest in steps if word == "ENTRYPOINT")
    command = bare.words(*entry, TRANSLATOR, "--port", 0)
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=APART, cwd=tmp_path)
    try:
        line = next(line for line in server.stderr if "translating at http://0.0.0.0:" in line)
        request = urllib.request.Request(
            f"{line.split()[-1].replace('0.0.0.0', '127.0.0.1')}/translate",
            b'{"text": "A man rides a bike."}',
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert b"Mann" in answer.read()
    finally:
        server.terminate()
        said = server.communicate()[1]
    assert server.returncode == 0, said
