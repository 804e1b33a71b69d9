"""A search that is killed again and again loses nothing, and does nothing twice."""

import pytest

from tests.e2e.killing import Trial, perform


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sandbox", "evaluations", "kills", "pause_s"),
    [
        ("bubblewrap", 8, 3, (0.3, 1.2)),
        pytest.param("docker", 8, 3, (0.3, 1.2), marks=pytest.mark.docker),
        pytest.param("bubblewrap", 200, 20, (1.0, 6.0), marks=pytest.mark.minutes),
    ],
)
def test_nothing_is_lost_or_done_twice(tmp_path, sandbox, evaluations, kills, pause_s):
    found = perform(Trial(evaluations, kills, sandbox, pause_s), tmp_path)
    output = (tmp_path / "output.txt").read_text()
    assert found["exit"] == 0, output[-2000:]
    assert found["killed"] == kills
    assert found["graded"] == evaluations
    assert found["graded_twice"] == found["calls_twice"] == found["fsck"] == 0
    assert found["leftovers"] == []
    assert "Traceback" not in output
