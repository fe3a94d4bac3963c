"""The picture of quality at equal speed: what counts as trained, and as as fast."""

import quality_speed
from test_races import RACES


def test_bleu_is_the_mean_over_seeds_at_the_dropout_of_the_lowest_loss():
    def row(dropout: str, loss: str, bleu: str, model="a") -> dict:
        return dict(stage="s", model=model, dropout=dropout, valid_nll_base2=loss, bleu=bleu)

    finals = [row("0.1", "2.1", "50"), row("0.3", "2.0", "40"), row("0.3", "2.2", "42")]
    assert quality_speed.find_bleu(finals, ("s",), ("a",)) == 41
    assert quality_speed.find_bleu([*finals, row("0", "3", "45", "b")], ("s",), ("a", "b")) == 45


def test_a_transformer_stands_beside_the_largest_of_ours_that_is_as_fast():
    speeds = {"exported d 1": 9.0, "exported d 2": 5.0, "exported d 3": 4.9, "CTranslate2 d 1": 5.0}
    table = quality_speed.make_table({"0": speeds, "2048": speeds}, {"exported d 2": 40.5})
    rows = [line for line in table.splitlines() if "d 1" in line]
    assert len(rows) == 2
    same = "not trained | 1.8 times as fast | not trained | d 2 | 40.50 |"
    assert all(line.endswith(f"| d 1 | {same}") for line in rows)


def test_the_page_has_the_table_of_the_rows(tmp_path, capsys, monkeypatch):
    picture = tmp_path / "picture.png"
    monkeypatch.setattr("sys.argv", ["quality_speed.py", "--out", str(picture)])
    quality_speed.main()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.strip() in (RACES / "translate.md").read_text(encoding="utf-8")
