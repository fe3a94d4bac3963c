import pytest

from resmlp_mt.translating.places import Places
from resmlp_mt.translating.shards import take_shard


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 50])
def test_shards_are_even_and_together_the_lines(count, tmp_path):
    lines, paths = [f"line {i}" for i in range(8)], [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("\n".join(lines[:5]) + "\n")
    paths[1].write_text("\n".join(lines[5:]))
    places = [Places() for _ in range(count)]
    shards = [take_shard(paths, f"{i}/{count}", p) for i, p in enumerate(places, 1)]
    parts = [list(part) for part, _ in shards]
    assert sum(parts, []) == lines
    assert [
        lines[before : before + len(p)] for p, (_, before) in zip(parts, shards, strict=True)
    ] == parts
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    wanted = [f"{paths[i > 4]}, line {i % 5 + 1}" for i in range(8)]
    found = [
        place.find(before + i)
        for place, part, (_, before) in zip(places, parts, shards, strict=True)
        for i in range(1, len(part) + 1)
    ]
    assert found == wanted
