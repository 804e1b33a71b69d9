"""Steps of a history."""

import pytest

from dgm.benchmarks.mining.history import Unit


@pytest.mark.parametrize(("time", "day"), [(0, "1970-01-01"), (10**15, "2100-01-01")])
def test_a_commit_has_a_day_whatever_time_it_claims(time, day):
    assert Unit("1" * 40, "", time, "Late", ()).day == day
