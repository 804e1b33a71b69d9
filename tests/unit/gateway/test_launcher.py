"""The launcher as a program: a real process, its own forwarder, a gateway on a real socket."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dgm.gateway import launcher
from tests.support.gateway.bench import ACTION, Script, gateway

pytestmark = pytest.mark.starts_processes

SEED = Path(__file__).parents[3] / "archive" / "seeds" / "plain"


async def launch(opened, token, command, tmp_path, time_limit_s=20.0):
    workdir = tmp_path / "repo"
    workdir.mkdir(exist_ok=True)
    record = {
        "command": command,
        "cwd": str(tmp_path),
        "workdir": str(workdir),
        "socket": str(opened.folder / opened.socket_name) if opened else "/nonexistent",
        "token": token,
        "time_limit_s": time_limit_s,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        launcher.__file__,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "SECRET": "of the host"},
    )
    output, _ = await asyncio.wait_for(process.communicate(json.dumps(record).encode()), 60)
    return process.returncode, output.decode()


def python(text):
    return [sys.executable, "-c", textwrap.dedent(text)]


def run(tmp_path, text, **options):
    return asyncio.run(launch(None, "token", python(text), tmp_path, **options))


def test_seed_agent_reaches_its_model_through_the_forwarder(tmp_path):
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"kind": "solve", "problem": "p", "workdir": str(tmp_path / "repo")}))

    async def scenario():
        model = Script()
        async with gateway(tmp_path / "g", model) as opened:
            with opened.lend(ACTION, "solve") as lease:
                command = ["env", f"PYTHONPATH={SEED}", sys.executable, "-m", "agent", str(job)]
                code, output = await launch(opened, lease.token, command, tmp_path)
        assert (code, "step 1: hello" in output) == (0, True)
        assert lease.calls == 1
        assert model.asked[0].messages[1].text.endswith("\n\np")
        assert {tool.name for tool in model.asked[0].tools} == {"bash", "edit"}

    asyncio.run(scenario())


def test_many_calls_at_once_pass_the_forwarder(tmp_path):
    agent = """
        import concurrent.futures, json, os, urllib.request
        def call(n):
            body = {"messages": [{"role": "user", "content": "x" * 200_000}], "stream": n % 2 == 0}
            request = urllib.request.Request(
                os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
                {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
            return b"hello" in urllib.request.urlopen(request, timeout=20).read()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            print(sum(pool.map(call, range(60))))
    """

    async def scenario():
        async with gateway(tmp_path / "g") as opened:
            with opened.lend(ACTION, "solve") as lease:
                assert await launch(opened, lease.token, python(agent), tmp_path) == (0, "60\n")

    asyncio.run(scenario())


def test_agent_gets_these_variables_and_no_others(tmp_path):
    code, output = run(tmp_path, "import json, os; print(json.dumps(dict(os.environ)))")
    variables = json.loads(output)
    variables.pop("LC_CTYPE", None)
    assert code == 0
    assert set(variables) == set(launcher.environment({"token": "t"}, 1))
    assert variables["OPENAI_API_KEY"] == variables["ANTHROPIC_API_KEY"] == "token"
    assert variables["OPENAI_BASE_URL"] == variables["ANTHROPIC_BASE_URL"] + "/v1"


def test_workdir_becomes_a_clean_repository(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("pass\n")
    (tmp_path / "repo" / ".gitignore").write_text("*\n")
    code, output = run(
        tmp_path,
        """
        import subprocess
        for command in ("status --short", "ls-files", "log --format=%s%ae"):
            subprocess.run(["git", *command.split()], cwd="repo")
        """,
    )
    assert (code, output) == (0, ".gitignore\na.py\nstartdgm\n")


def test_repository_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    run(tmp_path, "pass")
    assert list((tmp_path / "repo" / ".git").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "code"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_exit_status_is_the_agents(tmp_path, text, code):
    assert run(tmp_path, text)[0] == code


def test_command_that_cannot_be_started_is_told(tmp_path):
    code, output = asyncio.run(launch(None, "t", ["/no/such/program"], tmp_path))
    assert (code, "could not be started" in output) == (127, True)


def test_time_limit_ends_an_agent_that_ignores_sigterm(tmp_path):
    text = """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", flush=True)
        time.sleep(60)
    """
    for limit in (0.5, 5.0, 20.0):  # more, where Python takes long to start
        began = time.monotonic()
        code, output = run(tmp_path, text, time_limit_s=limit)
        assert code == 124
        assert time.monotonic() - began < limit + 30
        if output:
            break
    assert output == "up\n"


def test_what_an_agent_left_running_is_ended(tmp_path):
    code, output = run(
        tmp_path,
        """
        import subprocess
        print(subprocess.Popen(["setsid", "sh", "-c", "sleep 60 & sleep 60"]).pid, flush=True)
        import time; time.sleep(0.2)
        """,
    )
    assert code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(output), signal.SIG_DFL)


def test_token_is_in_no_command_line(tmp_path):
    text = "print(open('/proc/%d/cmdline' % __import__('os').getppid()).read())"
    assert "token" not in run(tmp_path, text)[1]


def test_gateway_that_never_answers_ends_the_call_and_not_the_agent(tmp_path, monkeypatch):
    source = Path(launcher.__file__).read_text().replace("CONNECT_S = 10.0", "CONNECT_S = 0.2")
    impatient = tmp_path / "launcher.py"
    impatient.write_text(source)
    monkeypatch.setattr(launcher, "__file__", str(impatient))
    text = """
        import os, urllib.request
        try:
            urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/models", timeout=5)
        except OSError as error:
            print("ended")
    """
    assert run(tmp_path, text) == (0, "ended\n")
