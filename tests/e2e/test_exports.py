"""``dgm export``: what the shipped example gives to other programs, and its best agent at work without dgm."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx
import pandas
import pytest

from dgm.analysis.best import best_of
from dgm.analysis.lineage import Lineage
from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.domain import SEED, Verdict
from dgm.meta.contract import read_contract
from dgm.show.diffs import Patch
from tests.support.runs.hostile import hostile_folder
from tests.support.wire_server.brain import Offline
from tests.support.wire_server.serving import WireServer

__all__ = ["hostile_folder"]

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "benchmarks" / "starter"


@pytest.fixture(scope="module")
def example(dgm):
    """The folder of the unpacked example."""
    folder = dgm.archive / "exported"
    dgm("archive", "unpack", ROOT / "archive" / "example" / "example.dgm", folder)
    return folder


@pytest.fixture(scope="module")
def alone(dgm, example, tmp_path_factory):
    """Its best agent, as a folder that runs by itself."""
    folder = tmp_path_factory.mktemp("alone") / "best"
    said = dgm.json("export", example, "--standalone", folder)
    with Run.open(example) as run:
        assert said["agent"] == best_of(run)
        assert from_folder(folder / "agent") == run.source(best_of(run))
    return folder


@pytest.fixture(scope="module")
def task(example):
    """A task that the best agent resolved in the search, the one that took the fewest calls."""
    with Run.open(example) as run:
        done = evaluations_of(run, best_of(run)).values()
        resolved = [one for one in done if one.verdict is Verdict.RESOLVED]
        return STARTER / "tasks" / min(resolved, key=lambda one: one.cost.usage.calls).task


@pytest.fixture
def repository(task, tmp_path):
    """The task's repository, as a user would have it."""
    folder = tmp_path / "repository"
    repo = tomllib.loads((task / "task.toml").read_text())["repo"]
    shutil.copytree(STARTER / "repos" / repo, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for words in (["init", "-q"], ["apply", task / "start.patch"], ["add", "-A"], ["commit", "-qm", "start"]):
        git(folder, *words)
    return folder


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True).stdout


def run_alone(folder, *words, code=0, **environment):
    """What ``run.py`` prints, started as a user does, with no package of ours to be found."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-I", folder / "run.py", *words],
        env={**kept, **environment},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()[-2000:]
    assert b"Traceback" not in done.stderr or code == 1
    return done


def solved(folder, task):
    """Whether the task's hidden tests pass."""
    shutil.copytree(task / "tests", folder / "tests", dirs_exist_ok=True)
    named = tomllib.loads((task / "task.toml").read_text())
    tests = [*named["fail_to_pass"], *named["pass_to_pass"]]
    words = [sys.executable, "-m", "pytest", "-q", *tests]
    return subprocess.run(words, cwd=folder, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.sandbox
@pytest.mark.parametrize("how", [(), ("--unconfined",)])
def test_the_exported_agent_solves_a_task_by_itself(alone, task, repository, how) -> None:
    if not how and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with WireServer(brain=Offline(), models=("some-model",)) as server:
        words = ["--repo", repository, "--model", "some-model", "--base-url", f"{server.url}/v1", *how]
        problem = (task / "problem.md").read_text()
        done = run_alone(alone, *words, problem, OPENAI_API_KEY="test-key")
        assert server.answered > 1
    assert git(repository, "status", "--porcelain") == b""
    assert done.stdout.startswith(b"diff --git ")
    subprocess.run(["git", "apply", "-"], cwd=repository, input=done.stdout, check=True)
    assert solved(repository, task)


@pytest.mark.sandbox
def test_apply_changes_the_repository_and_a_change_of_nothing_is_code_1(alone, repository, tmp_path) -> None:
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    own = tmp_path / "own"
    shutil.copytree(alone, own)
    (own / "agent.json").write_text(
        json.dumps({"command": ["sh", "agent.sh"], "requires": [], "model": "m", "run": "r"})
    )
    script = own / "agent" / "agent.sh"
    words = ["--repo", repository, "--base-url", "http://127.0.0.1:9/v1"]
    script.write_text("true\n")
    assert run_alone(own, *words, "nothing", code=1).stdout == b""
    script.write_text(
        "set -e\ncd /work/repo\nprintf 'a\\r\\nb\\0' > new.bin; mkdir -p sub/.git; touch sub/.git/HEAD sub/kept\n"
        "echo '* filter=x text eol=crlf' > .gitattributes; ln -s /etc/passwd link\n"
        "! touch /usr/owned 2>/dev/null; ! ls /root/.ssh /home/* 2>/dev/null; test ! -e /run/docker.sock\n"
    )
    done = run_alone(own, *words, "--apply", "change it")
    assert (repository / "new.bin").read_bytes() == b"a\r\nb\0"
    assert (repository / "link").is_symlink()
    assert not (repository / "sub" / ".git").exists()
    assert b"sub/kept" in done.stdout
    script.write_text("echo half > /work/repo/half; exit 3\n")
    done = run_alone(own, *words, "break down")
    assert b"+half" in done.stdout
    assert b"the agent failed (it ended with 3)" in done.stderr
    script.write_text("exit 3\n")
    assert b"the agent failed (it ended with 3)" in run_alone(own, *words, "break down", code=2).stderr
    script.write_text("sleep 60\n")
    assert b"ran out of time" in run_alone(own, *words, "--timeout", "0.5", "wait", code=1).stderr


def test_what_is_missing_is_one_line(alone, repository, tmp_path) -> None:
    cases = {
        "not a folder": ["--repo", tmp_path / "none", "p"],
        "say which model": ["--repo", repository, "p"],
        "set OPENAI_API_KEY": ["--repo", repository, "--model", "m", "p"],
    }
    for said, words in cases.items():
        done = run_alone(alone, *words, code=2)
        assert said in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    (nowhere / "git").symlink_to(shutil.which("git"))
    words = ["--repo", repository, "--model", "m", "--base-url", "http://127.0.0.1:9", "p"]
    assert b"--unconfined" in run_alone(alone, *words, code=2, PATH=str(nowhere)).stderr


def test_its_program_is_python_39_and_alone(alone) -> None:
    tree = ast.parse((alone / "run.py").read_text(), feature_version=(3, 9))
    imported = {
        name.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    } | {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    readme = (alone / "README.md").read_text()
    assert "It runs what a model writes" in readme
    assert str(ROOT) not in readme + (alone / "agent.json").read_text()


def test_the_example_opens_in_networkx_pandas_and_git(dgm, example, tmp_path) -> None:
    with Run.open(example) as run:
        agents, evaluations, spend = len(run.tree.agents), run.tree.evaluations, run.tree.spend
        commits = {f"agents/{agent.id}": agent.commit for agent in run.tree.agents}
    assert dgm.json("export", example, "--tree", tmp_path / "t.graphml")["agents"] == agents
    assert len(networkx.read_graphml(tmp_path / "t.graphml", node_type=int)) == agents
    assert dgm.json("export", example, "--evaluations", tmp_path / "e.csv")["rows"] == evaluations
    assert (pandas.read_csv(tmp_path / "e.csv").verdict != "invalid").sum() == evaluations
    assert dgm.json("export", example, "--spend", tmp_path / "s.parquet")["rows"] == spend.calls
    assert pandas.read_parquet(tmp_path / "s.parquet").output_tokens.sum() == spend.output_tokens
    assert dgm.json("export", example, "--repository", tmp_path / "r")["branches"] == agents
    listed = git(tmp_path / "r", "for-each-ref", "--format=%(refname:short) %(objectname)").decode().split()
    assert dict(zip(listed[::2], listed[1::2], strict=True)) == commits


def test_the_patch_of_the_example_is_its_steps_and_holds_no_protected_file(dgm, example, tmp_path) -> None:
    with Run.open(example) as run:
        best, contract = best_of(run), read_contract(run.source(SEED))
        dgm("export", example, "seed", tmp_path / "seed")
        written = dgm.json("export", example, "--patch", tmp_path / "best.patch")
        git(tmp_path / "seed", "am", tmp_path / "best.patch")
        assert from_folder(tmp_path / "seed") == run.source(best)
        assert written["commits"] == len(Lineage(run.tree, best).agents) - 1
    changed = {file.path for file in Patch((tmp_path / "best.patch").read_bytes()).files}
    assert changed
    assert all(map(contract.may_change, changed))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what to export"),
        (("best",), "say what to export"),
        (("--tree", "t.dot", "--spend", "s.csv"), "one at a time"),
        (("best", "folder", "--standalone", "s"), "one at a time"),
        (("best", "--tree", "t.dot"), "leave out 'best'"),
        (("--predictions", "p.jsonl"), "say whose"),
        (("99", "--standalone", "s"), "no agent '99'"),
        (("seed", "--patch", "p"), "nothing to propose"),
        (("seed", "--pr-text", "p"), "nothing to propose"),
        (("--tree", "t.xls"), "end it with"),
        (("--spend", "s.dot"), "end it with"),
        (("--spend", "none/s.csv"), "make it first"),
        (("--repository", "/proc/r"), "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_one_line(dgm, example, tmp_path, words, said) -> None:
    done = dgm("export", example, *words, code=2, cwd=tmp_path)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_nothing_hostile_reaches_the_terminal_and_a_stillborn_has_no_folder(
    dgm, hostile_folder, tmp_path
) -> None:
    for number, words in enumerate((("--tree", "t.gexf"), ("--spend", "s.csv"), ("--standalone", "s", "3"))):
        done = dgm("export", hostile_folder, *words, cwd=tmp_path)
        assert "\x1b" not in done.stdout + done.stderr, number
    readme = (tmp_path / "s" / "README.md").read_text()
    assert "\x1b" not in readme
    assert "<script" in readme
    assert "<" not in re.sub("`[^`]*`", "", readme)
