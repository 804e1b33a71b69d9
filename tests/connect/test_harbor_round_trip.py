"""Harbor itself runs an exported agent, its models take the exported trajectories, and dgm runs its task folders."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.api.evaluating import evaluate
from dgm.api.exporting import export
from dgm.archive.run import Run
from dgm.domain import Verdict
from dgm.exports.conversations import find_evaluations
from dgm.messages import Reply, ToolCall
from tests.support.runs.hostile import hostile_folder
from tests.support.wire_server import Offline, Scripted, WireServer

pytestmark = [pytest.mark.connect, pytest.mark.sandbox, pytest.mark.starts_processes]
harbor = pytest.importorskip("harbor")

__all__ = ["hostile_folder"]

TASKS = Path(__file__).parents[1] / "e2e" / "suites" / "harbor"
FIX = json.dumps({"command": "sed -i 's/number > limit/number >= limit/' limits.py; git status --short"})
REPLIES = (Reply("I fix it.", (ToolCall("c1", "bash", FIX),)), Reply("DONE"))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package of the recorded example's best agent, and its import path."""
    folder = tmp_path_factory.mktemp("harbor") / "package"
    exported = export("example", "best", f"harbor:{folder}")
    return folder, f"dgm_example_{exported.agent}:Agent"


def run_harbor(package, tmp_path, *words):
    folder, name = package
    env = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[2]}",
        "OPENAI_API_KEY": "test-key",
    }
    environment = "tests.connect.bubblewrap_environment:BubblewrapEnvironment"
    command = [
        "harbor",
        "run",
        "--agent",
        name,
        "--env",
        environment,
        "--jobs-dir",
        str(tmp_path / "jobs"),
        "-n",
        "1",
        "-y",
    ]
    done = subprocess.run(
        [str(Path(sys.executable).parent / command[0]), *command[1:], *words],
        env=env,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(file.read_text()) for file in sorted(tmp_path.glob("jobs/*/*/result.json"))]


def test_harbor_runs_the_exported_agent_and_its_work_is_graded(package, tmp_path):
    brain = Scripted(REPLIES)
    with WireServer(brain=brain) as server:
        (result,) = run_harbor(
            package,
            tmp_path,
            "--path",
            str(TASKS / "limit-itself-is-left-out"),
            "--model",
            "openai/gpt-test",
            "--base-url",
            server.openai_url,
        )
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}
    assert result["agent_info"]["name"].startswith("dgm-example-")
    assert "reaches(number, limit)" in brain.asked[0].messages[-1].text
    assert brain.asked[1].messages[-1].text.strip() == "M limits.py"


def test_agent_gets_the_same_verdicts_here_and_in_harbor(tmp_path):
    settings = {"benchmarks.harbor.image": "python", "sandbox": "bubblewrap"}
    benchmark, folder = f"harbor:{TASKS}", tmp_path / "evaluation"
    evaluate("solid", benchmark=benchmark, split="all", model="offline", into=folder, settings=settings)
    with Run.open(folder) as run:
        here = {item.task: item.verdict is Verdict.RESOLVED for _, item in find_evaluations(run, None)}
    exported = export(folder, "0", f"harbor:{tmp_path / 'package'}")
    (module,) = (path.name for path in Path(exported.target).iterdir() if path.is_dir())
    with WireServer(brain=Offline(), models=("gpt-test",)) as server:
        results = run_harbor(
            (exported.target, f"{module}:Agent"),
            tmp_path,
            "--path",
            str(TASKS),
            "--model",
            "openai/gpt-test",
            "--base-url",
            server.openai_url,
        )
    rewards = {result["task_name"]: result["verifier_result"]["rewards"]["reward"] for result in results}
    assert {task: reward >= 1.0 for task, reward in rewards.items()} == here
    assert set(here.values()) == {True, False}


def test_a_model_without_a_key_is_refused_before_a_container_starts(package):
    from harbor.agents.factory import AgentFactory
    from harbor.models.trial.config import AgentConfig

    folder, name = package
    sys.path.insert(0, str(folder))
    try:
        config = AgentConfig(name=name, model_name="openrouter/some/model")
        assert (
            AgentFactory.get_agent_class_from_config(config).options_schema()["properties"]["calls"][
                "default"
            ]
            == 80
        )
        with pytest.raises(ValueError, match="OPENROUTER_API_KEY"):
            AgentFactory.run_preflight(config)
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("source", ["example", "real-example", "hostile_folder"])
def test_harbor_reads_every_exported_trajectory(source, request, tmp_path):
    from harbor.models.trajectories import Trajectory

    run = request.getfixturevalue(source) if source == "hostile_folder" else source
    counts = export(run, f"atif:{tmp_path / 'atif'}").counts
    files = list((tmp_path / "atif").glob("*.json"))
    assert len(files) == counts["recorded"] > 0
    for file in files:
        trajectory = Trajectory.model_validate_json(file.read_text())
        assert trajectory.final_metrics.total_steps == len(trajectory.steps)
