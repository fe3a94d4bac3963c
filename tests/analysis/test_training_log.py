"""What is read from the logs of trainings."""

import json

from resmlp_mt.analysis.training_log import read_log


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
