"""``dgm.study`` and ``dgm.record_trial``: policies in simulated worlds, from a program."""

import asyncio

import pytest

import dgm
from dgm.errors import UserError

SMALL = {"families": ["drift"], "seeds": "7:9", "budgets": [20], "reference": "greedy"}


@pytest.mark.starts_processes
def test_policies_meet_the_same_worlds(tmp_path):
    told = []
    kept = tmp_path / "results.jsonl"
    done = dgm.study(["random"], results=kept, on_trial=lambda *numbers: told.append(numbers), **SMALL)
    assert told[0] == (0, 4) and told[-1] == (4, 4)
    assert {row["policy"] for row in done.standings} == {"random", "greedy"}
    assert (done.record["reference"], done.record["seeds"]) == ("greedy", [7, 8])
    assert done.save(tmp_path / "curves.svg").read_text().startswith("<svg")
    assert "--seeds 7:9 --budget 20" in done.save(tmp_path / "tables.md").read_text()
    with pytest.raises(UserError, match=r"written as \.svg or \.md"):
        done.save(tmp_path / "tables.pdf")
    again = dgm.study(["random"], results=kept, on_trial=lambda *numbers: told.append(numbers), **SMALL)
    assert (told[-1], again.record) == ((0, 0), done.record)


@pytest.mark.starts_processes
def test_a_trial_is_recorded_where_a_loop_runs(tmp_path):
    async def in_a_notebook():
        return dgm.record_trial(tmp_path / "run", "greedy", "drift", 7, budget=12)

    with asyncio.run(in_a_notebook()) as run:
        assert (run.state, len(run.evaluations) > 3) == ("goal reached", True)
        assert run.replay.decisions().differing == dgm.replay.decisions(run.run).differing == 0


def test_what_is_wrong_is_said_in_python(tmp_path):
    with pytest.raises(UserError, match=r"^seeds x: expected how many"):
        dgm.study(["random"], seeds="x")
    with pytest.raises(UserError, match="did you mean 'greedy'"):
        dgm.record_trial(tmp_path / "run", "greedi", "drift", 7)
    with pytest.raises(UserError, match="jobs 0"):
        dgm.study(["random"], jobs=0)
    assert "drift" in [row["name"] for row in dgm.families()]
