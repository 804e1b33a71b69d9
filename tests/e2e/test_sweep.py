"""A sweep as a user performs it: each run an ordinary one, the same command again goes on, compared by its name."""

import csv
import shutil

import pytest

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]

FILE = """
[sweep]
seeds = [5]
at_once = 2
[base]
model = "offline"
sandbox = "bubblewrap"
workers = 1
budget.evaluations = 1
[grid]
"policy.name" = ["random", "hgm"]
"""


def test_a_sweep_is_performed_gone_on_with_and_compared(dgm, tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(FILE)
    names = ["pair-random-5", "pair-hgm-5"]
    planned = dgm.json("sweep", file, "--dry-run")
    assert [run["stage"] for run in planned["runs"]] == ["to come", "to come"]
    said = dgm("sweep", file)
    assert all(f"{name}  begun" in said.stdout and f"{name}  goal reached" in said.stdout for name in names)
    assert [dgm.json("status", name)["policy"] for name in names] == ["random", "hgm"]
    before = (dgm.archive / names[0] / "events.db").stat().st_mtime_ns
    again = dgm.json("sweep", file)
    assert [(run["run"], run["stage"]) for run in again["runs"]] == [(name, "finished") for name in names]
    assert (dgm.archive / names[0] / "events.db").stat().st_mtime_ns == before

    found = dgm.json("compare", "pair", "--csv", tmp_path / "c.csv", "--svg", tmp_path / "c.svg")
    assert found["group_by"] == "variant"
    assert found["pairs_of_runs"][0]["pairs"][0]["seed"] == "5"
    with (tmp_path / "c.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {(row["run"], row["policy"], row["seed"]) for row in rows} == {
        (names[0], "random", "5"),
        (names[1], "hgm", "5"),
    }
    assert (tmp_path / "c.svg").read_bytes().startswith(b"<svg")
    assert f"each run against {names[0]}" in dgm("compare", *names).stdout


def test_a_changed_file_is_refused(dgm, tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(FILE.replace("evaluations = 1", "evaluations = 2"))
    if (dgm.archive / "pair-hgm-5").exists():
        said = dgm("sweep", file, code=2).stderr
        assert "budget.evaluations is 2, but run pair-random-5 was begun with 1" in said
    file.write_text(FILE.replace("seeds", "sedes"))
    assert "unknown key 'sedes' (did you mean 'seeds'?)" in dgm("sweep", file, code=2).stderr
