"""Agents written with the vendors' own packages run as they are, in a sandbox without a network."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

AGENTS = Path(__file__).with_name("agents")
KINDS = ("openai_chat", "openai_responses", "anthropic_messages")


def search(dgm, kind, sandbox):
    words = ["run", "--model", "offline", "--name", f"{kind}-{sandbox}", "--agent", AGENTS / kind]
    limits = ["--max-evaluations", 1, "--set", "budget.agents=1", "--seed", 1, "--workers", 1]
    run = dgm.json(*words, *limits, "--set", f"sandbox={sandbox}")
    evaluations = dgm.json("show", run["run"], "seed")["evaluations"]
    return run, [(e["task"], e["verdict"], e["reason"]) for e in evaluations]


def check(dgm, sandbox):
    found = {kind: search(dgm, kind, sandbox) for kind in KINDS}
    runs = [run for run, _ in found.values()]
    # The three say the same in three protocols, so the model answers each alike.
    assert len({str(evaluations) for _, evaluations in found.values()}) == 1
    assert len({run["spend"]["tokens"] for run in runs}) == 1
    for run in runs:
        assert run["evaluations"]["graded"] == 1
        assert run["evaluations"]["invalid"] == 0
        assert run["spend"]["calls"] > 5
        assert not dgm.json("status", run["run"])["refusals"]


def test_agents_on_the_vendors_packages_work_in_bubblewrap(dgm):
    pytest.importorskip("pip")
    check(dgm, "bubblewrap")


@pytest.mark.docker
@pytest.mark.minutes
def test_agents_on_the_vendors_packages_work_in_docker(dgm):
    check(dgm, "docker")


def test_packages_that_do_not_exist_are_named_in_one_line(dgm, tmp_path):
    source = (AGENTS / "openai_chat" / "agent.toml").read_text()
    (tmp_path / "agent.toml").write_text(source.replace('"openai"', '"openai==0.0.0.0"'))
    (tmp_path / "agent.py").write_text((AGENTS / "openai_chat" / "agent.py").read_text())
    words = [
        "run",
        "--model",
        "offline",
        "--name",
        "missing",
        "--agent",
        tmp_path,
        "--set",
        "sandbox=bubblewrap",
    ]
    *progress, complaint = dgm(*words, code=2).stderr.strip().splitlines()
    assert all(line.startswith("packages for Python ") for line in progress)
    assert "requires = ['openai==0.0.0.0']: cannot be installed" in complaint
