"""Packaging: `pip install -e . -c constraints.txt`."""

import os
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "resmlp_mt/__init__.py").read_text()).group(1)

# Where there is no C compiler, one comes from PyPI.
ZIGLANG = []
if not (os.environ.get("CC") or any(map(shutil.which, ("cc", "gcc", "clang")))):
    ZIGLANG = ["ziglang"]
    if find_spec("ziglang"):
        compiler = f"{shlex.quote(sys.executable)} -m ziglang cc -mcpu=baseline"
        os.environ |= {"CC": compiler, "LDSHARED": f"{compiler} -shared"}

# What exports run in. Without it the package is installed too, for checkpoints.
NATIVE = Extension(
    "resmlp_mt.native.kernels",
    sorted(f"resmlp_mt/native/{path.name}" for path in (ROOT / "resmlp_mt/native").glob("*.c")),
    depends=[str(path) for path in (ROOT / "resmlp_mt/native").glob("*.h")],
    # Of gcc and clang: the code is written for them. Sums of broken weights may overflow.
    extra_compile_args=["-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"]
    + ["-Wno-psabi", "-g0"],
    libraries=["m"],
    py_limited_api=True,  # it knows nothing of Python, and is called through ctypes
    optional=True,
)

# What trains, and what reads checkpoints. There are wheels of ve-fairseq, the module `fairseq`, for
# few machines: for all others `python -m resmlp_mt.compat.fairseq_wheel` makes one.
TRAIN = [
    "torch>=2.6",
    "ve-fairseq==0.12.3; python_version < '3.13' and platform_machine == 'x86_64'"
    " and sys_platform == 'linux'",
    "omegaconf<2.4",  # 2.4.0 refuses fairseq's --adam-betas '(0.9, 0.98)'
    "safetensors>=0.4.3",
    "onnx>=1.17",
    "onnxruntime>=1.21",  # 1.20 computes in 8 bits otherwise each time
    "tensorboard>=2.17",
    "matplotlib>=3.9",
]

setup(
    name="resmlp_mt",
    version=VERSION,
    description="Sequence-to-sequence ResMLP: translation without self-attention, for fairseq",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    # The code, and the weights that ship: their cards have the terms of the texts and images.
    license_expression="MIT AND LicenseRef-non-commercial-weights",
    license_files=["LICENSE", "resmlp_mt/pretrained/README.md", "resmlp_mt/pretrained/*/README.md"],
    python_requires=">=3.11",
    packages=find_packages(include=["resmlp_mt", "resmlp_mt.*"]),
    ext_modules=[NATIVE],
    setup_requires=ZIGLANG,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    package_data={
        "resmlp_mt": ["py.typed", "pretrained/README.md", "pretrained/*/*", "serving/page/*"]
        + ["native/*.h"],  # the structures that Python hands over
    },
    # Whoever trains the models that ship further takes them from the repository.
    exclude_package_data={"resmlp_mt": ["pretrained/*/model.pt"]},
    # scripts/floors.sh installs the oldest of these, and tries them.
    install_requires=[
        "numpy>=2.0",
        "sentencepiece>=0.2.3",  # which tells where in a text its subwords stand
        "pillow>=10.3",
        "sacrebleu>=2.4",
        "sentencex>=1.0.12",  # sentence ends, in all languages
        "regex>=2024.5.15",  # properties of Unicode
        "babel>=2.15",  # numbers and names of languages
        "py3langid>=0.3",  # which language a text is in
        "tqdm>=4.66",
        "packaging>=23.2",
        "filelock>=3.30",  # lock_descriptor
    ],
    extras_require={
        "train": TRAIN,
        # `resmlp-mt export` reads checkpoints, so it needs the same.
        "export": TRAIN,
        # Exports of classifiers that have no compiled form.
        "onnx": ["onnxruntime>=1.21"],
        # Training on images.
        "image": ["kornia"],
        # examples/corpus: translation with many workers, on one machine or a cluster.
        "ray": ["ray[data]"],
        # `resmlp-mt serve`: the documents of its interface without a network (fastapi-offline),
        # forms (python-multipart) and HTML (beautifulsoup4 and lxml).
        "serve": [
            "fastapi",
            "fastapi-offline",
            "starlette>=1.10",  # limits of bodies
            "uvicorn>=0.54",  # a worker that cannot start ends its supervisor
            "prometheus-client",
            "python-multipart",
            "beautifulsoup4",
            "lxml",
        ],
        # What examples/benchmarks races with.
        "benchmark": ["ctranslate2"],
        "dev": [
            "pytest",
            "pytest-xdist",
            "hypothesis",
            "ruff",
            "sacremoses",
            "httpx",
            "libretranslatepy",  # a client of the service
            "playwright",
        ],
    },
    entry_points={"console_scripts": ["resmlp-mt = resmlp_mt.cli:main"]},
)
