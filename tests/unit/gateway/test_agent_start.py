"""The program between launcher and agent: what an agent finds in its environment, and what its own programs find."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from dgm.gateway import agent_packages, agent_start
from dgm.meta.contract import GIVEN

LAUNCHED = {
    "PATH": os.environ["PATH"],
    "HOME": "/tmp",
    "OPENAI_BASE_URL": "http://127.0.0.1:8377/v1",
    "OPENAI_API_KEY": "token",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8377",
    "ANTHROPIC_API_KEY": "token",
    "DGM_MODEL": "default",
}
TELL = "import json, os; print(json.dumps(dict(os.environ)))"
NESTED = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def start(*command, job=MappingProxyType({}), **more):
    told = json.dumps({"kind": "solve", **job})
    words = [sys.executable, "-I", "-S", agent_start.__file__, told, *command]
    return subprocess.run(words, env={**LAUNCHED, **more}, capture_output=True, text=True, check=False)


@pytest.fixture
def packages(tmp_path):
    """A folder of packages, and the file that hides it, as a sandbox has both."""
    for folder, name, text in (
        ("packages", "lent.py", "WHAT = 'a package of the agent'"),
        ("start", "sitecustomize.py", Path(agent_packages.__file__).read_text()),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    return f"{tmp_path / 'start'}:{tmp_path / 'packages'}"


def test_the_usual_names_say_what_the_launcher_said():
    env = agent_start.complete(LAUNCHED, "solve")
    assert {env[name] for name in ("OPENAI_API_BASE", "LITELLM_PROXY_API_BASE")} == {
        LAUNCHED["OPENAI_BASE_URL"]
    }
    roots = ("ANTHROPIC_API_BASE", "AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT")
    assert {env[name] for name in roots} == {LAUNCHED["ANTHROPIC_BASE_URL"]}
    keys = ("ANTHROPIC_AUTH_TOKEN", "AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "LITELLM_PROXY_API_KEY")
    assert {env[name] for name in keys} == {"token"}
    assert {env[name] for name in ("OPENAI_MODEL", "OPENAI_DEFAULT_MODEL", "ANTHROPIC_MODEL")} == {"default"}


@pytest.mark.starts_processes
def test_the_agent_is_started_with_them_and_without_packages():
    env = json.loads(start(sys.executable, "-c", TELL).stdout)
    assert env["OPENAI_AGENTS_DISABLE_TRACING"] == "1"
    assert env["XDG_CACHE_HOME"] == "/tmp/.cache"
    assert not {"PYTHONPATH", agent_start.PACKAGES} & env.keys()


@pytest.mark.starts_processes
def test_a_command_that_is_not_there_is_named():
    done = start("no-such-program")
    assert (done.returncode, done.stdout.splitlines()) == (
        127,
        ["the agent's command could not be started: no-such-program: No such file or directory"],
    )


@pytest.mark.starts_processes
def test_programs_that_the_agent_starts_see_none_of_its_packages(packages):
    def python(*words):
        env = {"PATH": LAUNCHED["PATH"], "PYTHONPATH": packages}
        return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)

    assert python("-c", "import lent; print(lent.WHAT)").stdout == "a package of the agent\n"
    inner = python("-c", NESTED, "import os; print(os.environ.get('PYTHONPATH')); import lent")
    assert inner.stdout == "None\n"
    assert "No module named 'lent'" in inner.stderr


@pytest.mark.starts_processes
def test_commands_of_its_packages_are_for_the_agent_and_not_for_its_programs(tmp_path, packages):
    folder = tmp_path / "packages"
    (folder / "bin").mkdir()
    (folder / "bin" / "mine").write_text(
        "#!/usr/bin/env python3\nimport lent, os; os.system('mine || echo none')\n"
    )
    (folder / "bin" / "mine").chmod(0o755)
    path = f"{Path(sys.executable).parent}:{LAUNCHED['PATH']}"
    env = agent_start.complete({**LAUNCHED, "PATH": path, "PYTHONPATH": str(folder)}, "solve")
    assert env["PATH"] == f"{path}:{folder}/bin"
    env["PYTHONPATH"] = packages
    done = subprocess.run(["sh", "-c", "mine"], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "none\n", done.stderr


@pytest.mark.starts_processes
def test_the_machines_own_sitecustomize_is_still_run(packages, tmp_path):
    (tmp_path / "packages" / "sitecustomize.py").write_text("print('of the machine')")
    env = {"PATH": LAUNCHED["PATH"], "PYTHONPATH": packages}
    done = subprocess.run([sys.executable, "-c", ""], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "of the machine\n"


@pytest.mark.starts_processes
def test_a_machine_without_one_of_its_own_starts_python_without_complaint(packages):
    env = {"PATH": LAUNCHED["PATH"], "PYTHONPATH": packages}
    done = subprocess.run([sys.executable, "-c", ""], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.starts_processes
def test_packages_are_named_for_a_python_that_the_agent_starts_itself():
    env = json.loads(start(sys.executable, "-I", "-c", TELL, PYTHONPATH="/opt/packages").stdout)
    assert env[agent_start.PACKAGES] == "/opt/packages"
    assert env["PYTHONPATH"] == f"{agent_start.FOLDER}:/opt/packages"


def test_an_agent_at_work_on_its_own_source_starts_it_with_its_packages():
    env = agent_start.complete({**LAUNCHED, "PYTHONPATH": "/opt/packages"}, "improve")
    assert env["PYTHONPATH"] == "/opt/packages"


def test_variables_of_the_contract_stand_before_dgms_switches_and_behind_the_model():
    env = agent_start.complete(LAUNCHED, "solve", {"DO_NOT_TRACK": "0", "OPENAI_MODEL": "mine", "DEPTH": "3"})
    assert (env["DO_NOT_TRACK"], env["OPENAI_MODEL"], env["DEPTH"]) == ("0", "default", "3")


def test_no_contract_can_set_what_dgm_sets():
    ours = agent_start.model_names(LAUNCHED).keys() | LAUNCHED.keys() | {"PYTHONPATH", "DGM_RUNTIME"}
    assert {name for name in ours if not GIVEN.fullmatch(name)} == set()


@pytest.fixture
def runtime(tmp_path):
    """The shown files of an agent's own image, with one command."""
    commands = tmp_path / agent_start.COMMANDS
    commands.mkdir(parents=True)
    (commands / "mine").write_text('#!/bin/sh\necho "$0 $DGM_RUNTIME $DEPTH"\n')
    (commands / "mine").chmod(0o755)
    return str(tmp_path)


@pytest.mark.starts_processes
@pytest.mark.parametrize("beside", [True, False])
def test_a_command_of_the_agents_own_image_is_found(runtime, beside):
    done = start("mine", job={"env": {"DEPTH": "3"}, "runtime": runtime, "beside": beside})
    assert done.stdout.split() == [f"{runtime}/{agent_start.COMMANDS}/mine", runtime, "3"]


def test_only_an_agent_with_an_image_prefers_the_commands_of_the_runtime(runtime):
    assert agent_start.find_program("mine", runtime) == f"{runtime}/{agent_start.COMMANDS}/mine"
    assert agent_start.find_program("other", runtime) == "other"
    assert agent_start.find_program("./mine", runtime) == "./mine"
    assert agent_start.find_program("mine", "") == "mine"
