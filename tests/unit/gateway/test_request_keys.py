"""Keys of a request that are read, ignored, accepted with one value only, or refused by name."""

import pytest

from dgm.gateway.translation.parsing import check_keys, make_keys
from dgm.gateway.translation.wire import BadRequest

KEYS = make_keys("model", ["user"], {"n": (1,), "stream": (False, "no")}, {"store": "nothing is stored"})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"model": "m"},
        {"model": "m", "user": "u"},
        {"n": 1},
        {"n": 1.0, "stream": False},
        {"stream": "no"},
        {"store": None, "unheard": None},
    ],
)
def test_what_asks_for_nothing_more_is_accepted(given):
    check_keys(given, KEYS)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"n": 2}, "n must be 1 or left out"),
        ({"n": True}, "n must be 1 or left out"),
        ({"stream": 0}, 'stream must be false or "no" or left out'),
        ({"model": "m", "store": True}, "store is not offered here: nothing is stored"),
    ],
)
def test_the_first_key_that_cannot_be_honoured_is_named(given, told):
    with pytest.raises(BadRequest) as refused:
        check_keys(given, KEYS)
    assert str(refused.value) == told


def test_a_key_is_named_with_its_place():
    with pytest.raises(BadRequest, match=r"^tools\[0\]\.n must be 1"):
        check_keys({"n": 2}, KEYS, "tools[0]")
