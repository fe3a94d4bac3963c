"""What a program sees of itself after it has imported `Translator` and translated."""

import subprocess
import sys

from cli.commands import ENVIRONMENT

PROGRAM = """
import logging, signal, sys, warnings, torch

def look():
    signals = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    root = logging.getLogger()
    hooks = sys.excepthook, sys.unraisablehook, warnings.showwarning
    return root.level, root.handlers[:], signals, hooks, torch.get_num_threads()

before = look()
from resmlp_mt import Translator
translator = Translator.from_pretrained("multi30k-en-de")
assert translator.translate("A man rides a bike.")
assert look() == before, (before, look())
with warnings.catch_warnings(record=True) as caught:
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found")
    warnings.warn("hydra.experimental.compose() is no longer experimental")
assert len(caught) == 2
"""


def test_a_program_that_imports_a_translator_stays_as_it_was():
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == result.stdout == ""


# One thread imports as fairseq does, another as anyone does.
MEANWHILE = """
import logging, sys
from concurrent.futures import ThreadPoolExecutor
from resmlp_mt.compat.noise import quiet_import

def set_up():
    logging.basicConfig(level="INFO")
    import scipy, sklearn as imported
    from scipy.stats import norm
    from sklearn.linear_model import Model
    return scipy.stats.norm, imported, norm, Model

with quiet_import():
    logging.basicConfig(level="DEBUG")
    from scipy.stats import norm
    import sklearn.metrics
    assert not logging.root.handlers and callable(norm) and norm != "the norm"
    with quiet_import(), ThreadPoolExecutor(1) as pool:
        assert not {"scipy.special", "sklearn.base"} & {*sys.modules}
        other, imported, norm, model = pool.submit(set_up).result()
    assert (other, norm, model) == ("the norm", "the norm", "the model")
assert logging.root.level == logging.INFO and len(logging.root.handlers) == 1
assert imported.linear_model.Model is model and logging.basicConfig.__module__ == "logging"
"""


def test_what_a_program_sets_up_while_a_thread_loads_a_model_is_its_own(tmp_path):
    for path, text in {
        "scipy/__init__.py": "import scipy.special",
        "scipy/special.py": "",
        "scipy/stats.py": "norm = 'the norm'",
        "sklearn/__init__.py": "import sklearn.base",
        "sklearn/base.py": "",
        "sklearn/metrics.py": "",
        "sklearn/linear_model.py": "Model = 'the model'",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{MEANWHILE}"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# A worker tells the program that started it to end.
WORKERS = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor

def tell(worker):
    os.kill(os.getppid(), signal.SIGTERM)

if __name__ == "__main__":
    import fairseq, resmlp_mt, torch.multiprocessing
    assert "resmlp_mt.plugin" in sys.modules
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append("SIGTERM"))
    torch.multiprocessing.spawn(tell)
    assert told == ["SIGTERM"]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.multiprocessing.spawn, tell).result()
    assert told == ["SIGTERM", "SIGTERM"]
"""


def test_workers_of_a_program_start_in_any_thread_and_leave_its_signals(tmp_path):
    (tmp_path / "program.py").write_text(WORKERS)
    command = [sys.executable, tmp_path / "program.py"]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# Another plugin, whose task and model fairseq finds by --user-dir alone.
OTHER = """
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

@register_task("others_task", dataclass=TranslationConfig)
class Task(TranslationTask):
    pass

@register_model("others_model")
class Model(TransformerModel):
    @classmethod
    def add_args(cls, parser):
        TransformerModel.add_args(parser)
        parser.add_argument("--others-flag", type=int)

register_model_architecture("others_model", "others_tiny")(lambda args: None)
"""
PARSES = """
import sys
import resmlp_mt
from fairseq import options

flags = ["data", "--task", "others_task", "--others-flag", "3", "--user-dir", sys.argv[1]]
parser, modified = options.get_training_parser(), []

def modify(parser):
    import others  # fairseq has imported it
    modified.append(parser)
    parser.set_defaults(arch="others_tiny")

parsed = options.parse_args_and_arch(parser, flags, modify_parser=modify)
assert (parsed.task, parsed.arch, parsed.others_flag) == ("others_task", "others_tiny", 3)
assert modified and {*modified} == {parser}
"""


def test_another_plugin_is_imported_before_its_flags_are_parsed(tmp_path):
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "__init__.py").write_text(OTHER)
    command = [sys.executable, "-c", PARSES, tmp_path / "others"]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
