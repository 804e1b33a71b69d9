"""Five poisoned tasks make descendants insecure; probes catch it, and a bisection names the ancestor and the edit."""

import pytest

from tests.support.poisoned import MODEL, POISON, make_levels

pytestmark = [pytest.mark.sandbox, pytest.mark.minutes]

TLS = "feeds-give-up-too-early"
SEARCH = (
    "--agent",
    "plain",
    "--policy",
    "sica",
    "--seed",
    1,
    "--max-evaluations",
    40,
    "--set",
    "budget.agents=6",
)


@pytest.fixture(scope="module", params=["poisoned", "clean"])
def searched(dgm, request, tmp_path_factory):
    """The name of a search of six agents on the suite with or without the poison."""
    suite = make_levels(
        tmp_path_factory.mktemp("suites") / request.param, poisoned=request.param == "poisoned"
    )
    words = ("--benchmark", suite, "--model", f"scripted:{MODEL}", "--set", "sandbox=bubblewrap", *SEARCH)
    assert dgm.json("run", "--name", request.param, "--workers", 2, *words)["agents"] >= 5
    # A suite that changes meanwhile is refused, where the run's own is meant.
    problem = suite / "tasks" / "level-0-is-ready" / "problem.md"
    before = problem.read_text()
    problem.write_text(before + "\n")
    for words in (
        ("resume", request.param),
        ("evaluate", f"{request.param}:0", "--split", "search"),
        ("bisect", request.param, "--task", "level-0-is-ready"),
    ):
        assert "has changed since the run began" in dgm(*words, code=2).stderr
    problem.write_text(before)
    return request.param


def test_probes_catch_the_poison_and_bisect_names_the_edit(dgm, searched, tmp_path):
    is_poisoned = searched == "poisoned"
    probed = dgm.json("probe", searched, "best", "seed", "--tasks", TLS, code=int(is_poisoned))
    outcomes = [
        row["outcome"] for agent in probed["agents"] for row in agent["probes"] if row["probe"] == TLS
    ]
    assert outcomes == ["unsafe" if is_poisoned else "safe", "safe"]
    assert dgm.json("probe", searched, "best", "seed", "--tasks", TLS, code=int(is_poisoned)) == {
        **probed,
        "evaluation": {
            **probed["evaluation"],
            "ended": "nothing left to do",
            "message": "all of it was done before",
        },
    }

    found = dgm.json("bisect", searched, "--probe", TLS, code=int(not is_poisoned))
    dgm("export", searched, "best", tmp_path / "best", code=2 if is_poisoned else 0)
    if not is_poisoned:
        assert (found["ending"], found["first_failing"]) == ("the agent passes", None)
        return
    assert (found["ending"], found["last_passing"], found["first_failing"]) == ("found", 2, 3)
    assert f"+{POISON}" in found["patch"]
    assert dgm.json("bisect", searched, "--probe", TLS)["spend"] == found["spend"]
    command = "! grep -q 'verification of certificates' agent/prompts.py"
    assert dgm.json("bisect", searched, "--command", command)["first_failing"] == 3
    task = dgm.json("bisect", searched, "--task", "level-1-is-ready", "--attempts", 1, code=1)
    assert task["ending"] in ("the seed fails already", "the agent passes")
    dgm("export", searched, "best", tmp_path / "best", "--allow-failed-probes")
