"""Which sentences are searched together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.engines.search.batched import group


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=12),
    st.integers(1, 30),
    st.booleans(),
)
def test_batches_are_as_large_as_they_may_be_and_no_larger(sentences, batch_tokens, alike):
    lengths, apart = [length for length, _ in sentences], [other for _, other in sentences]

    def may_be(batch):
        longest = max(lengths[i] for i in batch)
        return (
            longest * len(batch) <= batch_tokens  # with the padding
            and len({apart[i] for i in batch}) == 1
            and not (alike and {lengths[i] for i in batch} != {longest})
        )

    batches = list(group(lengths, apart, batch_tokens, alike))
    assert sorted(sum(batches, [])) == list(range(len(sentences)))
    assert all(may_be(batch) or len(batch) == 1 for batch in batches)
    assert not any(may_be([*batch, following[0]]) for batch, following in pairwise(batches))
