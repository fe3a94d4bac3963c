"""A program after it has imported `Translator` and translated."""

from cli.commands import run

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
    result = run("python", "-c", PROGRAM, own=True)
    assert result.stderr == result.stdout == ""


def test_who_has_imported_us_can_import_the_program_that_trains():
    code = "import resmlp_mt, fairseq_cli.train as program, resmlp_mt.compat.trainer as ours\n"
    code += "assert program.Trainer is ours.Trainer"
    run("python", "-c", code, own=True)


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
    run("python", "-c", PARSES, tmp_path / "others", own=True)
