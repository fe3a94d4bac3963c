"""Packaging: `pip install -e . -c constraints.txt`."""

import re
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "resmlp_mt/__init__.py").read_text()).group(1)

# The search of exported models in compiled code. Where it cannot be built ONNX Runtime does it.
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

setup(
    name="resmlp_mt",
    version=VERSION,
    description="Sequence-to-sequence ResMLP: translation without self-attention, for fairseq",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["resmlp_mt", "resmlp_mt.*"]),
    ext_modules=[NATIVE],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    package_data={
        "resmlp_mt": ["py.typed", "pretrained/README.md", "pretrained/*/*", "serving/page/*"]
    },
    install_requires=[
        "torch>=2.6",
        "ve-fairseq==0.12.3",  # the module `fairseq` for Python 3.11 and 3.12
        "sentencepiece>=0.2.3",  # which tells where in a text its subwords stand
        "sentencex",  # sentence ends, in all languages
        "py3langid",  # which language a text is in
        "sacrebleu",
        "numpy",
        "pillow",
        "safetensors",
        "tqdm",
        "matplotlib",
        "tensorboard",
    ],
    extras_require={
        # Training on images.
        "image": ["kornia"],
        # `resmlp-mt export`, and translation with what it wrote.
        "export": ["onnx", "onnxruntime"],
        # examples/corpus: translation with many workers, on one machine or a cluster.
        "ray": ["ray[data]"],
        # `resmlp-mt serve`: the documents of its interface without a network (fastapi-offline),
        # forms (python-multipart), HTML (beautifulsoup4), languages (py3langid) and names (babel).
        "serve": [
            "fastapi",
            "fastapi-offline",
            "uvicorn",
            "prometheus-client",
            "python-multipart",
            "beautifulsoup4",
            "py3langid",
            "babel",
        ],
        # What `resmlp-mt benchmark translate` can race with.
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
