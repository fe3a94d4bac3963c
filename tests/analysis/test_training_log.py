"""Figures read from the logs of trainings."""

import json

import pytest

from resmlp_mt.analysis.training_log import choose_metric, read_entries, read_log
from resmlp_mt.errors import UserError


def test_updates_that_were_done_again_count_once(tmp_path):
    entries = [
        {"num_updates": str(n), "loss": str(loss)} for n, loss in ((10, 5), (20, 4), (30, 3))
    ]
    entries += [{"valid_num_updates": "30", "valid_loss": "3.5"}]
    again = [{"num_updates": "20", "loss": "4.5"}, {"num_updates": "30", "loss": "2"}]
    again += [{"valid_num_updates": "30", "valid_loss": "2.5"}]
    log = "".join(f"2026-11-25 | INFO | train | {json.dumps(entry)}\n" for entry in entries + again)
    (tmp_path / "train.log").write_text(log)
    train, valid = read_log(tmp_path / "train.log", "loss")
    assert train == [(10, 5.0), (20, 4.5), (30, 2.0)] and valid == [(30, 2.5)]


@pytest.fixture
def logs(tmp_path):
    """Logs of a translator and of a classifier, and lines without JSON."""
    texts = {
        "text": '{"num_updates": "1", "loss": "4"}\n{"valid_num_updates": 1, "valid_nll_loss": 3}',
        "images": '{"epoch": 1, "num_updates": "1", "loss": "2", "top1": "9"}\nand so on',
        "plain": "epoch 1 | loss 3",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n")
    return {name: tmp_path / name for name in texts}


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        (["text"], "nll_loss"),
        (["images"], "loss"),
        (["text", "images"], "loss"),
        (["plain", "text"], "nll_loss"),
    ],
)
def test_the_loss_is_drawn_where_a_log_has_none_without_smoothing(names, metric, logs):
    assert choose_metric([read_entries(logs[name]) for name in names]) == metric


def test_a_log_without_the_metric_is_refused_with_those_that_it_has(logs):
    with pytest.raises(UserError, match="images: no acc in it; it has loss, top1$"):
        read_log(logs["images"], "acc")
    with pytest.raises(UserError, match="plain: no acc in it; train with --log-format json"):
        read_log(logs["plain"], "acc")


def test_lines_that_no_training_writes_are_named_or_left_out(tmp_path):
    log = tmp_path / "train.log"
    log.write_text('{"a": ' * 100_000 + '\n{"num_updates": "1", "loss": "4"}\n')
    assert read_log(log, "loss")[0] == [(1, 4.0)]
    log.write_text('{"num_updates": Infinity, "loss": 1}\n')
    with pytest.raises(UserError, match="train.log, line 1: loss or its update is no number"):
        read_log(log, "loss")
