"""The launcher as a program: a real process, its own forwarder, a gateway on a real socket."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from dgm.gateway import launcher
from dgm.gateway.launcher import Forwarder
from tests.support.gateway.bench import ACTION, gateway

pytestmark = pytest.mark.starts_processes


async def answer_clock(reader, writer):
    """Answers like a gateway that is asked for its clock."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"lost_s": 0.0}')
    writer.close()


async def launch(opened, token, command, tmp_path, time_limit_s=20.0, path=None, hidden=()):
    if opened is None and path is None:
        path = tmp_path / "clock.sock"
        async with await asyncio.start_unix_server(answer_clock, path):
            return await launch(None, token, command, tmp_path, time_limit_s, path, hidden)
    workdir = tmp_path / "repo"
    workdir.mkdir(exist_ok=True)
    record = {
        "command": command,
        "cwd": str(tmp_path),
        "workdir": str(workdir),
        "model": "default",
        "socket": str(opened.folder / opened.socket_name) if opened else str(path),
        "token": token,
        "time_limit_s": time_limit_s,
        "hidden": list(hidden),
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


def test_agent_gets_these_variables_and_no_others(tmp_path):
    code, output = run(tmp_path, "import json, os; print(json.dumps(dict(os.environ)))")
    variables = json.loads(output)
    variables.pop("LC_CTYPE", None)
    assert code == 0
    assert set(variables) == set(launcher.environment({"token": "t", "model": "m"}, 1))
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


HIDDEN = ("**/AGENTS.md", ".qwen")
INSTRUCTIONS = {"AGENTS.md": "mine", "docs/AGENTS.md": "docs", ".qwen/skills/a/SKILL.md": "skill"}


def write_instructions(repo):
    for name, text in {**INSTRUCTIONS, "docs/a.md": "a"}.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")


def files_of(repo):
    return {str(path.relative_to(repo)): path.read_text() for path in repo.rglob("*.md")}


@pytest.mark.parametrize("has_git", [False, True])
def test_an_agent_works_without_what_is_hidden_and_leaves_it_as_it_was(tmp_path, has_git):
    repo = tmp_path / "repo"
    write_instructions(repo)
    if has_git:
        git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run([*git, *words], check=True)
    text = """
        import subprocess
        subprocess.run("find . -name '*.md' -not -path './.git/*'; git status --short", shell=True, cwd="repo")
    """
    code, output = run(tmp_path, text, hidden=(*HIDDEN, "CLAUDE.md"))
    assert (code, output) == (0, "./docs/a.md\n")
    assert files_of(repo) == {**INSTRUCTIONS, "docs/a.md": "a", "CLAUDE.md": "mine"}
    assert (repo / "CLAUDE.md").is_symlink()


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("import pathlib; pathlib.Path('repo/AGENTS.md').write_text('changed')", []),
        ("import pathlib; pathlib.Path('repo/.qwen').write_text('a file')", []),
        (
            "import shutil; shutil.rmtree('repo/docs'); open('repo/docs', 'w')",
            ["docs/AGENTS.md", "docs/a.md"],
        ),
        ("import time; time.sleep(60)", []),
    ],
)
def test_what_was_hidden_is_back_whatever_the_agent_does(tmp_path, text, gone):
    write_instructions(tmp_path / "repo")
    run(tmp_path, text, hidden=HIDDEN, time_limit_s=1.5)
    left = {name: text for name, text in {**INSTRUCTIONS, "docs/a.md": "a"}.items() if name not in gone}
    assert files_of(tmp_path / "repo") == {**left, "CLAUDE.md": "mine"}


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


STARTED = python("print('started')")


def impatient(tmp_path, monkeypatch):
    """A launcher that waits for less long."""
    source = Path(launcher.__file__).read_text()
    for name, seconds in (
        ("CONNECT_S = 10.0", "CONNECT_S = 0.2"),
        ("REACH_S = 60.0", "REACH_S = 1.0"),
        ("APPEARS_S = 3.0", "APPEARS_S = 0.2"),
    ):
        source = source.replace(name, seconds)
    copy = tmp_path / "launcher.py"
    copy.write_text(source)
    monkeypatch.setattr(launcher, "__file__", str(copy))


def test_gateway_that_is_gone_ends_the_call_and_not_the_agent(tmp_path, monkeypatch):
    impatient(tmp_path, monkeypatch)
    text = f"""
        import os, urllib.request
        os.unlink({str(tmp_path / "clock.sock")!r})
        try:
            urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/models", timeout=5)
        except OSError as error:
            print("ended")
    """
    assert run(tmp_path, text) == (0, "ended\n")


def test_no_agent_is_started_where_there_is_no_gateway(tmp_path, monkeypatch):
    impatient(tmp_path, monkeypatch)
    code, output = asyncio.run(launch(None, "t", STARTED, tmp_path, path="/nonexistent"))
    assert code == launcher.UNREACHED
    assert output == "there is no /nonexistent in the sandbox; the engine may see other files than dgm does\n"


async def test_no_agent_is_started_where_the_gateway_does_not_know_its_token(tmp_path, monkeypatch):
    impatient(tmp_path, monkeypatch)
    async with gateway(tmp_path / "g") as opened:
        with opened.lend(ACTION, "solve") as lease:
            path = str(opened.folder / opened.socket_name)
            assert not lease.reached
            code, output = await launch(opened, "another", STARTED, tmp_path)
            assert (code, output) == (
                launcher.UNREACHED,
                f"{path} in the sandbox: HTTP/1.1 401 Unauthorized\n",
            )
            assert not lease.reached
            assert await launch(opened, lease.token, STARTED, tmp_path) == (0, "started\n")
            assert lease.reached


# Connections to the gateway: from a sandbox before it is there, and from an agent that opens too many


def test_a_connection_waits_for_a_gateway_that_is_late(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:

        def appear():
            listener.bind("g")
            listener.listen(1)

        late = threading.Timer(0.1, appear)
        late.start()
        with Forwarder("g")._connect() as far:
            assert far.getpeername() == "g"
        late.join()


def test_a_connection_to_no_gateway_fails_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "CONNECT_S", 0.1)
    with pytest.raises(FileNotFoundError):
        Forwarder(str(tmp_path / "g"))._connect()
