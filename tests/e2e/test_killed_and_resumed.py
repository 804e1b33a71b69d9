"""A search that is killed again and again loses nothing, and does nothing twice."""

import shutil

import pytest

from tests.e2e.killing import Trial, perform


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_nothing_is_lost_or_done_twice(tmp_path, sandbox):
    if sandbox == "bubblewrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    found = perform(Trial(12, kills=3, workers=4, sandbox=sandbox, pause_s=(0.3, 1.2)), tmp_path)
    output = (tmp_path / "output.txt").read_text()
    assert found["exit"] == 0, output[-2000:]
    assert found["killed"] == 3
    assert found["graded"] == 12
    assert found["graded_twice"] == found["calls_twice"] == found["fsck"] == 0
    assert found["leftovers"] == []
    assert "Traceback" not in output
