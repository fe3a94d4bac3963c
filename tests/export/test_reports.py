"""Reports of ONNX Runtime to its maker: there are none."""

import os
import subprocess
import sys

import pytest


def test_onnx_runtime_keeps_no_reports_where_the_package_came_first(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    environment = {name: v for name, v in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "import resmlp_mt, onnxruntime"]
    subprocess.run(command, env=environment, check=True)
    assert not list(tmp_path.rglob("*"))
