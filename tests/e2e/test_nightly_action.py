"""Nights of the GitHub Action: its own steps, with a bare repository as origin and a program in place of ``gh``."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.program import without_keys
from tests.support.suite_on_disk import WORD

pytestmark = pytest.mark.sandbox

ROOT = Path(__file__).parents[2]
LEARNER = Path(__file__).parent / "agents" / "learner"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = [step for step in ACTION["runs"]["steps"] if "run" in step and step["name"] != "Install dgm"]
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
GH = """#!/bin/sh
if [ "$2" = list ]; then cat "$GH_CALLS.opened" 2>/dev/null; exit 0; fi
printf '%s\\n' "$@" >>"$GH_CALLS"
while [ $# -gt 0 ]; do [ "$1" = --body-file ] && cp "$2" "$GH_CALLS.body"; shift; done
[ ! -e "$GH_CALLS.refuses" ] || exit 1
echo https://forge.example/pull/1 | tee "$GH_CALLS.opened"
"""


class Job:
    """A checkout with an agent, its origin, and what GitHub provides a job with."""

    def __init__(self, folder: Path) -> None:
        self.temp, self.checkout, self.origin = folder / "temp", folder / "checkout", folder / "origin.git"
        (self.temp / "dgm" / "bin").mkdir(parents=True)
        self._write_program(
            self.temp / "dgm" / "bin" / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
        )
        self._write_program(folder / "bin" / "gh", GH)
        self.calls = folder / "gh-calls"
        suite = shutil.copytree(WORD, folder / "words")
        (task,) = (suite / "tasks").iterdir()
        for number in range(8):
            copy = shutil.copytree(task, suite / "tasks" / f"say-it-{number}")
            file = copy / "task.toml"
            file.write_text(file.read_text().replace('"search"', '"promotion"'))
        self.environment = {
            **without_keys(os.environ),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GH_CALLS": str(self.calls),
            "SOME_API_KEY": "secret",
        }
        self.git("init", "--quiet", "--bare", self.origin, cwd=folder)
        self.git("clone", "--quiet", self.origin, self.checkout, cwd=folder)
        shutil.copytree(LEARNER, self.checkout / "bots" / "fixer")
        (self.checkout / "search.toml").write_text(
            f'benchmark = "{suite}"\nmodel = "offline"\nsandbox = "bubblewrap"\nworkers = 2\npolicy.name = "greedy"\n'
        )
        self.git("checkout", "--quiet", "-b", "main")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "An agent")
        self.git("push", "--quiet", "origin", "main")

    @staticmethod
    def _write_program(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def git(self, *words, cwd=None) -> str:
        command = ["git", *map(str, words)]
        return subprocess.run(
            command, cwd=cwd or self.checkout, capture_output=True, text=True, check=True
        ).stdout

    def night(self, **inputs: object) -> dict[str, str]:
        """Execute the steps as GitHub does, and return the outputs."""
        values = {
            f"inputs.{name}": default["default"]
            for name, default in ACTION["inputs"].items()
            if "default" in default
        }
        values |= {f"inputs.{name.replace('_', '-')}": str(value) for name, value in inputs.items()}
        values |= {"github.action_path": str(ROOT), "runner.temp": str(self.temp), "inputs.base": "main"}
        self.git("checkout", "--quiet", "main")
        output, summary = self.temp / "output", self.temp / "summary"
        output.write_text("")
        for step in STEPS:
            variables = {
                name: EXPRESSION.sub(lambda match: values[match[1]], text)
                for name, text in step["env"].items()
            }
            files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.checkout,
                env={**self.environment, **files, **variables},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        return dict(line.split("=", 1) for line in output.read_text().splitlines())


@pytest.mark.sampled
def test_a_night_without_and_one_with_a_certified_agent(tmp_path) -> None:
    job = Job(tmp_path)
    inputs = {"config": "search.toml", "agent": "bots/fixer", "max_usd": 1, "token": "t"}

    assert job.night(**inputs, max_evaluations=1) == {"certified": ""}
    assert not job.calls.exists()
    assert job.git("branch", "--remotes").split() == ["origin/main"]

    refuses = Path(f"{job.calls}.refuses")
    refuses.touch()
    with pytest.raises(AssertionError, match="::error::"):
        job.night(**inputs, max_evaluations=1)
    refuses.unlink()
    job.calls.unlink()

    outputs = job.night(**inputs, max_evaluations=1)
    number = outputs["certified"]
    branch = f"dgm/nightly-agent-{number}"
    assert outputs["pull-request"] == "https://forge.example/pull/1"
    words = job.calls.read_text().split("\n")
    assert words[:2] == ["pr", "create"]
    assert (words[words.index("--head") + 1], words[words.index("--base") + 1]) == (branch, "main")
    changed = job.git("diff", "--name-only", "main", f"origin/{branch}").split()
    beside = [f"bots/fixer.{ending}.json" for ending in ("bom", "certificate", "provenance")]
    assert changed == [*beside, "bots/fixer/agent.py"]
    assert "LEARNED = True" in job.git("show", f"origin/{branch}:bots/fixer/agent.py")
    assert job.git("rev-list", "--count", f"main..origin/{branch}").strip() == "1"
    certificate = json.loads(job.git("show", f"origin/{branch}:{beside[1]}"))
    body = Path(f"{job.calls}.body").read_text()
    assert certificate["digest"] in body
    assert f"{certificate['test']['wins']} wins" in body

    job.git("push", "--quiet", "origin", "--delete", branch)
    assert job.night(**inputs, max_evaluations=1) == {"certified": number}
    assert job.calls.read_text().count("create") == 1


@pytest.mark.parametrize("agent", [".", "..", ".github/bot", "/etc"])
def test_an_agent_elsewhere_is_not_replaced(tmp_path, agent) -> None:
    code = "import nightly; print(nightly.agent_folder())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'action'}:{ROOT}", "INPUT_AGENT": agent},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "UserError" in done.stderr


def test_an_input_that_is_no_number_is_one_line(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "action" / "nightly.py", "search"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "INPUT_MAX_USD": "5 USD"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "::error::max-usd: '5 USD' is no number\n")


def test_no_line_of_a_provider_is_a_command_to_github(tmp_path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            r"import nightly; nightly.summarise('no answer:\n::add-mask::x\r::stop-commands::y')",
        ],
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'action'}:{ROOT}",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search(r"^::", done.stdout.replace("\r", "\n"), re.MULTILINE)
    assert (tmp_path / "summary").read_text() == f"{done.stdout}\n"


def test_no_input_stands_in_the_text_of_a_command() -> None:
    assert all("${{" not in step["run"] for step in ACTION["runs"]["steps"] if "run" in step)
    named = {match for step in STEPS for text in step["env"].values() for match in EXPRESSION.findall(text)}
    assert {name.removeprefix("inputs.") for name in named if name.startswith("inputs.")} == set(
        ACTION["inputs"]
    )


def test_only_the_step_that_needs_the_token_has_it() -> None:
    assert [step["name"] for step in STEPS if "inputs.token" in str(step["env"])] == [
        "Propose the certified agent"
    ]
