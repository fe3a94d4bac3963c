import pytest

from resmlp_mt.data.subwords import train_subwords
from resmlp_mt.errors import UserError


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), UserError("line 3")])
def test_what_the_text_raises_comes_out_as_it_is(error):
    def lines():
        yield "the dog sleeps"
        raise error

    with pytest.raises(type(error)) as caught:
        train_subwords(lines(), 20, "bpe")
    assert caught.value is error
