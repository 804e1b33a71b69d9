"""``dgm.evolve`` and ``dgm.open``: a search from a program, its result, and how it goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.hostile.suite import make as make_suite

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

POLICY = """
from dgm.domain import SEED, Evaluate, Expand

class InTurn:
    def decide(self, view, rng):
        if view.busy:
            return None
        newest = view.tree.agents[-1].id
        untried = view.untried(newest)
        return Evaluate(newest, untried[0]) if untried else Expand((SEED,), view.operator)
"""
PROGRAM = """
import sys
from pathlib import Path
import dgm
from in_turn import InTurn

heard = []
run = dgm.evolve(
    benchmark=sys.argv[1],
    model="offline",
    policy=InTurn(),
    operators=["self-edit"],
    max_evaluations=2,
    workers=1,
    name="first",
    settings={"limits.calls": 40, "sandbox": "bubblewrap"},
    on_event=heard.append,
)
assert run.state == "goal reached", run.ending
assert [type(told.event).__name__ for told in heard].count("TaskGraded") == 2
frame = run.evaluations.to_pandas()
assert list(frame["policy"].unique()) == ["in_turn:InTurn"]
assert len(frame) == 2 and len(run.agents) == 2
best = run.best
assert 0 < best.lower_bound < 1 and best.own.n >= 0
assert [step.agent for step in run.agents[1].lineage.lineage] == [0, 1]
assert run.agents[1].diff().startswith("diff --git")
run.agents[1].export("child/")
assert Path("child/agent.toml").is_file()
run.report(html="report.html")
again = dgm.open("first").resume(max_evaluations=3)
assert (again.state, len(again.evaluations)) == ("goal reached", 3)
assert again.replay().differing == 0
print(again.view.best.model_dump_json())
"""
STOPPED = """
import sys
import dgm

def stop(recorded):
    if type(recorded.event).__name__ == "TaskGraded":
        assert dgm.open("stopped").stop(now=True)

run = dgm.evolve(
    benchmark=sys.argv[1],
    model="offline",
    workers=1,
    name="stopped",
    settings={"sandbox": "bubblewrap"},
    on_event=stop,
)
assert (run.state, run.ending.reason, len(run.evaluations) < 160) == ("stopped", "stopped", True)
print("the program goes on")
"""
EVALUATION = """
import json, pathlib, sys
import dgm

heard = []
suite = pathlib.Path(sys.argv[1])
best = dgm.open("first").best
done = dgm.evaluate(best, split="search", max_usd=0.5, on_event=heard.append)
assert done.missing == 0 and done.agents[0].tally.n == 1
assert pathlib.Path(done.folder).parent.name == "first"
assert [type(told.event).__name__ for told in heard].count("TaskGraded") == 1
again = dgm.evaluate(best, split="search", on_event=lambda told: sys.exit("nothing was left to do"))
assert (again.folder, again.message) == (done.folder, "all of it was done before")
assert len(dgm.open(done.folder).evaluations) == 1
(task,) = best.run.tree.tasks
graded = dgm.open("first").replay(best.id, what="evaluations", settings={"sandbox": "bubblewrap"})
assert graded.identical and len(graded.evaluations) == 1, graded
patch = (suite / "tasks" / task / "solution.patch").read_text()
rows = [{"instance_id": task, "model_name_or_path": "me", "model_patch": patch}]
pathlib.Path("mine.json").write_text(json.dumps(rows))
graded = dgm.evaluate("mine.json", benchmark=suite, settings={"sandbox": "bubblewrap"}, into="graded")
assert graded.agents[0].tally.resolved == 1
assert graded.report["resolved_ids"] == [task]
"""
BATCH = """
import sys
import dgm

settings = {
    "benchmark": sys.argv[1],
    "model": "offline",
    "sandbox": "bubblewrap",
    "workers": 1,
    "budget.evaluations": 1,
}
events = []
batch = dgm.evolve_batch(name="pair", seeds=[5, 6], parallel=2, settings=settings, on_run=events.append)
assert batch.exit_code == 0, batch
assert sorted(run.stage.value for run in events) == ["finished", "finished", "running", "running"]
assert [(run.run, run.seed, run.evaluations) for run in batch.runs] == [("pair-5", 5, 1), ("pair-6", 6, 1)]
again = dgm.evolve_batch(
    name="pair", seeds="5:7", settings=settings, on_run=lambda run: sys.exit("nothing was left to do")
)
assert again.exit_code == 0
"""
REPAIR = """
import pathlib, sys
import dgm

suite, repo = pathlib.Path(sys.argv[1]), pathlib.Path("mine")
repo.joinpath("sums").mkdir(parents=True)
repo.joinpath("sums/__init__.py").write_text("def double(number):\\n    return number * 3\\n")
before = repo.joinpath("sums/__init__.py").read_text()
seed = dgm.open("first").agents[0]
said = "double(2) should be 4, not 6: it is half as much again."
lines = []
settings = {"sandbox": "bubblewrap", "limits.solve_s": 120}
solution = dgm.solve(seed, repo, said, settings=settings, max_usd=1, on_progress=lines.append)
assert repo.joinpath("sums/__init__.py").read_text() == before
assert solution.spend.calls > 0 and not solution.timed_out, solution.output
assert any("works on a copy" in line for line in lines)
assert bool(solution.patch) != bool(solution.why_empty)
if solution.patch:
    assert pathlib.Path(solution.patch_file).read_text() == solution.patch
    solution.apply()
    assert repo.joinpath(solution.changed[0]).read_text() != before
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a program has searched with a policy of its own."""
    place = tmp_path_factory.mktemp("program")
    (place / "in_turn.py").write_text(POLICY)
    (place / "program.py").write_text(PROGRAM)
    suite = make_suite(place / "suite")
    done = _python(place, "program.py", str(suite))
    assert done.returncode == 0, done.stderr
    (place / "best.json").write_text(done.stdout.splitlines()[-1])
    return place


def _python(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "DGM_ARCHIVE"}
    root = str(Path(__file__).parents[2])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, path)))
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_a_program_searches_reads_and_goes_on(folder):
    assert "The best agent" in (folder / "report.html").read_text()
    assert json.loads((folder / "best.json").read_text())["agent"] in (0, 1)


def test_a_program_goes_on_after_its_search_was_stopped(folder, tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    done = _python(tmp_path, "stopped.py", str(folder / "suite"))
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["the program goes on"], 0), done.stderr


def test_a_program_evaluates_an_agent_and_grades_patches(folder):
    (folder / "evaluation.py").write_text(EVALUATION)
    done = _python(folder, "evaluation.py", str(folder / "suite"))
    assert done.returncode == 0, done.stderr


def test_a_program_lets_an_agent_work_on_a_repository(folder):
    (folder / "repair.py").write_text(REPAIR)
    done = _python(folder, "repair.py", str(folder / "suite"))
    assert done.returncode == 0, done.stderr


def test_a_program_performs_a_batch(folder):
    (folder / "batch.py").write_text(BATCH)
    done = _python(folder, "batch.py", str(folder / "suite"))
    assert done.returncode == 0, done.stderr


def test_commands_read_a_run_whose_policy_they_cannot_import(folder):
    # -P: the working folder is not searched for modules.
    said = _python(folder, "-P", "-m", "dgm", "status", "first", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["best"] == json.loads((folder / "best.json").read_text())
    refused = _python(folder, "-P", "-m", "dgm", "replay", "first")
    assert refused.returncode == 2
    assert refused.stderr.startswith("dgm: in_turn:InTurn, one of the policies, cannot be imported here")
    replayed = _python(folder, "-P", "-m", "dgm", "replay", "first", path=str(folder))
    assert (replayed.returncode, "all identical" in replayed.stdout) == (0, True)


def test_a_changed_policy_is_told_of_before_a_replay(folder, tmp_path):
    (tmp_path / "in_turn.py").write_text(POLICY + "# changed\n")
    said = _python(folder, "-P", "-m", "dgm", "replay", "first", path=str(tmp_path))
    assert "in_turn:InTurn, one of its policies, has changed since the run began" in said.stderr
