"""An agent's package for Harbor: its files, and what of an agent Harbor cannot run."""

import ast
import json
import os
import subprocess
import sys

import pytest

from dgm.api.exporting import export
from dgm.errors import UserError
from dgm.exports.harbor import write_agent
from tests.support.runs.packable import ALICE, begin

pytestmark = pytest.mark.starts_processes

AGENT = b"""[agent]
command = ["python3", "agent/loop.py"]
check = ["python3", "-c", "import os; print(os.environ['DEPTH'])"]
requires = ["openai>=3"]
hidden = ["AGENTS.md"]
actions = "text"
env = {DEPTH = "3"}
"""


@pytest.fixture
def package(tmp_path):
    with begin(tmp_path / "My run 1", {"limits": {"calls": 7, "solve_s": 60.0}}, AGENT) as run:
        assert write_agent(run, run.tree.agents[0], tmp_path / "out", ALICE) == {"files": 2}
        return tmp_path / "out" / "dgm_my_run_1_0"


def test_package_holds_the_source_the_programs_and_the_facts(package):
    facts = json.loads((package / "facts.json").read_text())
    assert (facts["name"], facts["calls"], facts["time_limit_s"]) == ("dgm-My run 1-0", 7, 60.0)
    assert (facts["requires"], facts["actions"]) == (["openai>=3"], {"actions": "text"})
    assert (package / "inside" / "agent" / "agent" / "loop.py").read_bytes() == b"loop\n"
    assert (package / "inside" / "facts.json").read_bytes() == (package / "facts.json").read_bytes()
    classes = [
        node.name
        for node in ast.parse((package / "__init__.py").read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    assert "Agent" in classes
    assert "dgm_my_run_1_0:Agent" in (package.parent / "README.md").read_text()


def test_program_in_the_container_checks_the_agent(package, tmp_path):
    done = subprocess.run(
        [sys.executable, package / "inside" / "start.py", "--check"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3\n")


@pytest.mark.parametrize("command", ["pass", "import time; time.sleep(9)"])
def test_agent_finds_its_job_and_leaves_no_repository(package, tmp_path, command):
    (package / "inside" / "agent" / "agent" / "loop.py").write_text(
        "import json, pathlib, sys\n"
        "job = json.load(open(sys.argv[1])); work = pathlib.Path(job['workdir'])\n"
        "files = sorted(path.name for path in work.iterdir())\n"
        f"(work / 'seen.json').write_text(json.dumps([job, files])); {command}\n"
    )
    (package / "inside" / "job.json").write_text(
        json.dumps({"problem": "fix", "time_limit_s": 2, "calls": 5, "model": "m"})
    )
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("obey")
    (work / "a.py").write_text("x = 1\n")
    model = {
        "OPENAI_BASE_URL": "http://x/v1",
        "ANTHROPIC_BASE_URL": "http://x",
        "OPENAI_API_KEY": "k",
        "DGM_MODEL": "m",
    }
    done = subprocess.run(
        [sys.executable, package / "inside" / "start.py"],
        cwd=work,
        env={"PATH": os.environ["PATH"], **model},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if command == "pass" else 124), done.stderr
    job, files = json.loads((work / "seen.json").read_text())
    assert (job["kind"], job["problem"], job["actions"], job["calls"]) == ("solve", "fix", "text", 5)
    assert files == [".git", "a.py"]
    assert sorted(path.name for path in work.iterdir()) == ["AGENTS.md", "a.py", "seen.json"]


@pytest.mark.parametrize(
    ("source", "words"), [(AGENT + b'image = "node"\n', "image of its own"), (b"[agent]\n", "command")]
)
def test_agent_that_harbor_cannot_run_is_refused(tmp_path, source, words):
    with begin(tmp_path / "run", source=source) as run, pytest.raises(UserError, match=words):
        write_agent(run, run.tree.agents[0], tmp_path / "out", ALICE)
    assert not (tmp_path / "out").exists()


def test_address_writes_the_best_agent_with_its_documents(tmp_path):
    exported = export("example", "best", f"harbor:{tmp_path / 'out'}")
    assert (exported.what, len(exported.documents)) == ("harbor", 2)
    assert (tmp_path / "out" / f"dgm_example_{exported.agent}" / "inside" / "agent" / "agent.toml").is_file()
