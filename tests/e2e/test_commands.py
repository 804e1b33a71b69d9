"""Every command on a real run, with good input and bad."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import EVALUATIONS

pytestmark = pytest.mark.sandbox

TALLY = {"resolved", "unresolved", "n", "rate", "interval"}
AGENT = {"agent", "parents", "commit", "operator", "rationale", "own", "clade", "lower_bound"}


def test_status_says_what_a_program_needs(dgm, searched):
    status = dgm.json("status", "small")
    assert status["run"] == "small"
    assert status["state"] == "goal reached"
    assert status["agents"] >= 4
    graded = status["evaluations"]
    assert graded["resolved"] + graded["unresolved"] == graded["graded"] == EVALUATIONS
    assert set(status["spend"]) >= {"calls", "tokens", "usd"}
    assert status["spend"]["calls"] > EVALUATIONS
    assert set(status["best"]["own"]) == set(status["best"]["clade"]) == TALLY


def test_tree_show_and_lineage_agree(dgm, searched):
    agents = dgm.json("show", "small")["agents"]
    assert all(set(agent) >= AGENT for agent in agents)
    best = dgm.json("status", "small")["best"]
    lineage = dgm.json("show", "small", "best", "--lineage")["lineage"]
    assert lineage[0]["agent"] == 0
    assert {**lineage[-1], **best} == lineage[-1] == {**agents[best["agent"]], "patch": lineage[-1]["patch"]}
    shown = dgm.json("show", "small", "0")
    assert {key: shown[key] for key in AGENT} == {key: agents[0][key] for key in AGENT}
    assert len(shown["evaluations"]) == shown["own"]["n"]
    assert agents[0]["clade"]["n"] == EVALUATIONS


def test_export_gives_an_agent_that_passes_its_own_check(dgm, searched, tmp_path):
    dgm("export", "small", "1", tmp_path / "out")
    done = subprocess.run(["python3", "-m", "agent", "--check"], cwd=tmp_path / "out", check=False)
    assert done.returncode == 0
    dgm("export", "small", "1", tmp_path / "out", code=2)


def test_an_exported_agent_can_be_a_seed(dgm, searched, tmp_path):
    dgm("export", "small", "1", tmp_path / "agent")
    words = [
        "run",
        "--model",
        "offline",
        "--name",
        "second",
        "--agent",
        tmp_path / "agent",
        "--set",
        "sandbox=bubblewrap",
    ]
    assert dgm.json(*words, "--max-evaluations", 1)["evaluations"]["graded"] == 1


def test_an_unpacked_run_goes_on_with_a_larger_budget(dgm, searched, tmp_path):
    packed = tmp_path / "small.dgm"
    assert dgm.json("export", "small", packed)["counts"]["bytes"] == packed.stat().st_size
    assert dgm.json("export", packed, dgm.archive / "longer")["addresses"] == []
    summary = dgm.json("resume", "longer", "--max-evaluations", EVALUATIONS + 1)
    assert summary["evaluations"]["graded"] == EVALUATIONS + 1
    assert summary["ended"] == "goal reached"


@pytest.fixture
def repository(tmp_path):
    """A user's repository with a fault that the seed can mend."""
    folder = tmp_path / "mine"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").write_text("")
    (folder / "pricing.py").write_text(
        "def price(count):\n    if count > 10:\n        return 8\n    return 10\n"
    )
    (folder / "tests" / "test_pricing.py").write_text(
        "import unittest\nfrom pricing import price\n\n\nclass Pricing(unittest.TestCase):\n"
        "    def test_ten_are_cheaper(self):\n        self.assertEqual(price(10), 8)\n\n"
        "    def test_one(self):\n        self.assertEqual(price(1), 10)\n"
    )
    (folder / "secret.env").write_text("KEY=1")
    (folder / ".gitignore").write_text("secret.env\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


PROBLEM = "price(10) should be 8: from ten pieces on they are cheaper. A test in tests/test_pricing.py fails."


def test_solve_asks_before_it_changes_anything(dgm, searched, repository, tmp_path, monkeypatch):
    monkeypatch.setitem(dgm.environment, "XDG_STATE_HOME", str(tmp_path))
    before = (repository / "pricing.py").read_text()
    words = ["solve", "small:0", repository, PROBLEM, "--set", "sandbox=bubblewrap"]
    done = dgm(*words, stdin="n\n")
    said = done.stdout
    assert "+    if count >= 10:" in said
    assert f"Apply this change to {repository} (1 file)? [y/N]" in done.stderr
    assert "works on a copy of" in done.stderr
    assert f"nothing was changed; the change is kept: git -C {repository} apply " in said
    assert re.search(r"\d+ model calls, [\d,]+ tokens, 0.00 USD", said)
    assert (repository / "pricing.py").read_text() == before
    kept = list((tmp_path / "dgm" / "patches").iterdir())
    assert "+    if count >= 10:" in kept[0].read_text()
    assert "applied" in dgm(*words, stdin="y\n").stdout
    assert "count >= 10" in (repository / "pricing.py").read_text()


def test_solve_for_scripts(dgm, searched, repository, tmp_path, monkeypatch):
    monkeypatch.setitem(dgm.environment, "XDG_STATE_HOME", str(tmp_path))
    (repository / "pricing.py").write_bytes((repository / "pricing.py").read_bytes().replace(b"\n", b"\r\n"))
    (repository / ".gitattributes").write_text("*.py text filter=none\n")
    words = ["solve", "small:seed", repository, PROBLEM, "--set", "sandbox=bubblewrap"]
    answer = dgm.json(*words)
    assert not answer["applied"]
    assert "count >= 10" in Path(answer["patch_file"]).read_text()
    assert "count >= 10" not in (repository / "pricing.py").read_text()
    answer = dgm.json(*words, "--apply")
    assert (answer["applied"], answer["patch_file"], answer["agent_exit_code"]) == (True, None, 0)
    assert "secret" not in answer["patch"]
    lines = (repository / "pricing.py").read_bytes().split(b"\r\n")
    assert b"    if count >= 10:" in lines and not any(b"\n" in line for line in lines)
