"""A batch as a user performs it: each run an ordinary one, and the same command again continues."""

import pytest

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.sandbox,
]

FILE = """
model = "offline"
sandbox = "bubblewrap"
workers = 1
budget.evaluations = 1
"""


def test_a_batch_is_performed_continued_and_listed(dgm, tmp_path):
    (tmp_path / "pair.toml").write_text(FILE)
    words = ["run", tmp_path / "pair.toml", "--seeds", "5", "--vary", "policy.name=random,hgm"]
    names = ["pair-random-5", "pair-hgm-5"]
    done = dgm(*words, "--parallel", 2)
    assert all(f"{name}  begun" in done.stdout and f"{name}  goal reached" in done.stdout for name in names)
    assert [dgm.json("status", name)["policy"] for name in names] == ["random", "hgm"]
    before = (dgm.archive / names[0] / "run.db").stat().st_mtime_ns
    again = dgm.json(*words)
    assert [(run["run"], run["stage"]) for run in again["runs"]] == [(name, "finished") for name in names]
    assert (dgm.archive / names[0] / "run.db").stat().st_mtime_ns == before
    # Its own files are no trouble for the list of runs.
    rows = [row for row in dgm.json("status")["runs"] if row["run"].startswith("pair")]
    assert sorted((row["run"], row["problem"]) for row in rows) == [(name, None) for name in sorted(names)]

    changed = dgm(*words, "--max-evaluations", 2, code=2).stderr
    assert "budget.evaluations is 2, but run pair-random-5 was begun with 1" in changed
