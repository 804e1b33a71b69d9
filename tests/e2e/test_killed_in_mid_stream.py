"""A search that is killed while answers are streamed asks nothing twice that was answered, and hides no cost."""

import pytest

from tests.e2e.killed_calls import Trial, perform


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    "trial",
    [
        Trial(kills=3, midway=2, tasks=7, stream_s=(0.2, 0.4), alive_s=(0.0, 2.0)),
        pytest.param(Trial(10, 5, 40, (0.5, 1.0), (0.0, 4.0)), marks=pytest.mark.minutes),
    ],
    ids=["3 kills", "10 kills"],
)
def test_nothing_answered_is_asked_again_and_what_was_cut_off_is_counted(tmp_path, trial):
    found = perform(trial, tmp_path)
    output = (tmp_path / "output.txt").read_text()
    assert found["exit"] == found["replay_exit"] == 0, output[-2000:]
    assert found["kills"] == trial.kills
    assert found["in_mid_stream"] >= trial.midway
    assert found["graded"] == trial.tasks
    assert found["faults"] == []
    assert found["cut_calls_named"] >= 2
    assert found["bookings_at_worst"] >= found["cut_calls_named"]
    assert found["still_open"] == found["answered_twice"] == found["answered_and_asked_again"] == 0
    assert found["conversations_below_the_provider"] == []
    assert found["checks_counted"] >= found["checks_at_provider"]
    assert found["more_tokens"] >= 0
    assert found["more_usd"] >= 0
    assert "Traceback" not in output
