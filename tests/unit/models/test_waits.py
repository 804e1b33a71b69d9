"""The wait that a provider asks for, whatever its server writes."""

import pytest

from dgm.models.refusals import read_refusal
from dgm.models.waits import LONGEST_S, requested_wait


@pytest.mark.parametrize(
    ("message", "headers", "seconds"),
    [
        ("slow down", {"retry-after": "1e300"}, LONGEST_S),
        ("slow down", {"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, None),
        (f"try again in {'9' * 400} days", {}, LONGEST_S),
        ("try again in 20 s", {"retry-after": "never"}, 20.0),
    ],
)
def test_no_wait_is_longer_than_a_clock_holds(message, headers, seconds):
    assert requested_wait(read_refusal(429, {"error": {"message": message}}, headers)) == seconds
