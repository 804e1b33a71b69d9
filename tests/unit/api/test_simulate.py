"""``dgm.simulate``: policies in simulated worlds, from a program."""

import asyncio

import pytest

import dgm
from dgm.errors import UserError

SMALL = {"families": ["drift"], "worlds": "7:9", "budget": 20, "reference": "greedy"}


def test_policies_meet_the_same_worlds(tmp_path):
    counts = []
    file = tmp_path / "trials.csv"
    view = dgm.simulate(
        policies=["random"], csv=file, on_step=lambda step: counts.append((step.done, step.total)), **SMALL
    )
    assert (counts[0], counts[-1]) == ((0, 4), (4, 4))
    assert {row["policy"] for row in view.table} == {"random", "greedy"}
    assert (view.reference, view.worlds) == ("greedy", (7, 8))
    assert len(view.trials) == 4
    starts = {(row["world"], row["score"]) for row in view.curves if row["spent"] == 0.0}
    assert len(starts) == 2, "both policies begin with the same agent"
    assert dgm.simulate(policies=["random"], csv=file, **SMALL) == view


def test_a_policy_of_a_module_is_compared(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "policy_for_simulate.py").write_text(
        "from dgm.policies.policy import policy\nfrom dgm.policies.published import greedy\nMINE = policy(greedy)\n"
    )
    view = dgm.simulate(policies=["policy_for_simulate:MINE"], **SMALL)
    assert [row["policy"] for row in view.table] == ["policy_for_simulate:MINE", "greedy"]


@pytest.mark.starts_processes
def test_a_search_is_recorded_where_a_loop_runs(tmp_path):
    async def in_a_notebook():
        return dgm.simulate(policies=["random"], record=tmp_path / "run", **SMALL)

    view = asyncio.run(in_a_notebook())
    recorded = next(row for row in view.trials if row["policy"] == "random")
    with dgm.open(tmp_path / "run") as run:
        assert run.state == "goal reached"
        assert (len(run.evaluations), recorded["world"]) == (recorded["evaluations"], 7)
        assert run.replay().identical


@pytest.mark.parametrize("worlds", ["x", "5:5", "9:3", -1, 0, "99999999999999999999"])
def test_worlds_that_cannot_be_are_refused(worlds):
    with pytest.raises(UserError, match="worlds"):
        dgm.simulate(policies=["random"], worlds=worlds)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("families", ["nix"]),
        ("policies", ["nix"]),
        ("reference", "hgm+alpha=0.5+gate=staged"),
        ("budget", 0),
        ("csv", "/no/such/folder/trials.csv"),
    ],
)
def test_other_arguments_that_cannot_be_are_refused(argument, given):
    with pytest.raises(UserError):
        dgm.simulate(**{"policies": ["random"], **SMALL, argument: given})


def test_what_cannot_be_recorded_is_refused(tmp_path):
    for wrong in ({"policies": ["oracle"], "families": ["drift"]}, {"families": ["operators"]}):
        with pytest.raises(UserError, match="record"):
            dgm.simulate(record=tmp_path / "run", worlds=1, budget=5, **wrong)


def test_families_are_listed():
    assert ("drift", "reported") in [(row["name"], row["group"]) for row in dgm.families()]
