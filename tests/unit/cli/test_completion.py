"""What a shell is offered after Tab: by the function that answers it, and typed into real shells."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgm.cli import completing
from dgm.cli.candidates import parameter_kind
from dgm.cli.completing import BREAKS, LINE, SHELL, answer_completion, complete_line
from dgm.cli.outline import make_outline, read_outline
from tests.support.runs.paid import small

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory):
    """A folder with runs, a suite beside it, and a cache that holds the outline."""
    place = tmp_path_factory.mktemp("complete")
    small(place / "archive" / "alpha-run").run.close()
    (place / "archive" / "beta").mkdir()
    (place / "archive" / "beta" / "run.json").write_text("{}")
    (place / "archive" / "beta" / "events.db").write_text("no log")
    (place / "own-suite").mkdir()
    (place / "own-suite" / "suite.toml").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        outline = read_outline()
        assert read_outline() == json.loads(json.dumps(outline)), "kept in the cache"
    return place, outline


@pytest.fixture
def offered(surroundings, monkeypatch):
    place, outline = surroundings
    monkeypatch.chdir(place)
    monkeypatch.delenv("DGM_ARCHIVE", raising=False)
    return lambda line: [value for _, value, _ in complete_line(line, outline)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dgm st", ["status", "stop"]),
        ("A=1 dgm st", ["status", "stop"]),
        ("dgm archive ver", ["verify"]),
        ("dgm run --max-u", ["--max-usd"]),
        ("dgm run -", ["-h"]),
        ("dgm status alp", ["alpha-run"]),
        ("dgm status ", ["alpha-run", "beta", "example", "real-example"]),
        ("dgm show alpha-run s", ["seed"]),
        ("dgm diff alpha-run 0 b", ["best"]),
        ("dgm show alpha-run --json 1", ["1"]),
        ("dgm replay alpha-run lineage 1", ["1"]),
        ("dgm evaluate alpha-run best 1", ["1"]),
        ("dgm solve --agent alpha-run:1", ["alpha-run:1"]),
        ("dgm solve --agent alph", ["alpha-run:"]),
        ("dgm show beta ", ["best", "seed"]),
        ("dgm run --benchmark st", ["starter"]),
        ("dgm run --benchmark starter+own", ["starter+own-suite"]),
        ("dgm run --benchmark swebench:l", ["swebench:lite"]),
        ("dgm benchmark show star", ["starter"]),
        ("dgm run --policy sic", ["sica"]),
        ("dgm run --policy=sic", ["--policy=sica"]),
        ("dgm run --operator self-edit+d", ["self-edit+diagnose"]),
        ("dgm run --sandbox d", ["docker"]),
        ("dgm run --set limits.calls", ["limits.calls="]),
        (
            "dgm run --set gates.novelty=",
            ["gates.novelty=off", "gates.novelty=similarity", "gates.novelty=model"],
        ),
        ("dgm run --set vetting.patch=t", ["vetting.patch=true"]),
        ("dgm run --set policy.gate=st", ["policy.gate=staged"]),
        ("dgm run --set models.al", ["models.aliases."]),
        ("dgm run --set providers.openai.str", ["providers.openai.stream="]),
        ("dgm resume beta --set sandbox=b", ["sandbox=bubblewrap"]),
        ("dgm completion f", ["fish"]),
        ("dgm docs lib", ["library"]),
        ("dgm log alpha-run --kind task_g", ["task_graded"]),
        ("dgm sandbox build polyglot-r", ["polyglot-rust"]),
        ("dgm nothing-like-it ", []),
        ("dgm status 'unclosed", []),
    ],
)
def test_what_may_follow_is_offered(line, words, offered):
    found = offered(line)
    assert found[: len(words)] == words or (set(words) <= set(found) and line.endswith("-"))
    assert len(found) == len(words) or line.endswith("-")


def test_paths_are_left_to_the_shell(offered, surroundings):
    assert [kind for kind, _, _ in complete_line("dgm run conf", surroundings[1])] == ["file"]
    assert [kind for kind, _, _ in complete_line("dgm run --seed-agent x", surroundings[1])] == ["dir"]
    assert [kind for kind, _, _ in complete_line("dgm run --benchmark ./x", surroundings[1])] == ["dir"]


def test_every_run_agent_and_setting_is_known(surroundings):
    def parameters(command):
        yield from command["params"]
        for inner in command["commands"].values():
            yield from parameters(inner)

    for name, command in surroundings[1]["commands"].items():
        for parameter in parameters(command):
            if parameter["name"] in (
                "run_name",
                "agent_name",
                "agent_names",
                "assignments",
                "model",
                "benchmark",
            ):
                assert parameter_kind(parameter), (name, parameter)


def test_bash_is_told_the_part_behind_its_last_break(surroundings, monkeypatch, capsys):
    place, _ = surroundings
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    line = "dgm run --set policy.name=sic"
    assert answer_completion({SHELL: "bash", LINE: line, BREAKS: " =:"}) == 0
    assert answer_completion({SHELL: "bash", LINE: line, BREAKS: " "}) == 0
    assert answer_completion({SHELL: "zsh", LINE: line, BREAKS: " =:"}) == 0
    assert capsys.readouterr().out == "plain\tsica\t\n" + "plain\tpolicy.name=sica\t\n" * 2


def test_a_fault_is_never_shown_in_the_shell(monkeypatch, capsys):
    def broken():
        print("noise", file=sys.stderr)
        raise KeyboardInterrupt

    monkeypatch.setattr(completing, "read_outline", broken)
    assert answer_completion({SHELL: "bash", LINE: "dgm st"}) == 0
    assert capsys.readouterr() == ("", "")


def test_what_is_kept_is_what_the_commands_say(surroundings):
    assert surroundings[1] == json.loads(json.dumps(make_outline()))


class Terminal:
    """A shell in tmux, with the completion of dgm."""

    def __init__(self, place, shell):
        self._words = ["tmux", "-L", f"dgm-{os.getpid()}-{shell}", "-f", os.devnull]
        (place / "bin").mkdir(exist_ok=True)
        program = place / "bin" / "dgm"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m dgm "$@"\n')
        program.chmod(0o755)
        start = {
            "bash": "bash --norc --noprofile",
            "zsh": "zsh -f",
            "fish": "fish --no-config",
        }[shell]
        self._environment = {
            **os.environ,
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(place / "cache"),
            "HOME": str(place),
            "TERM": "xterm",
        }
        self._environment.pop("DGM_ARCHIVE", None)
        self._tmux("new-session", "-d", "-x", "120", "-y", "30", "-c", str(place), start)

    def _tmux(self, *words, check=True):
        done = subprocess.run(
            [*self._words, *words], env=self._environment, capture_output=True, text=True, check=check
        )
        return done.stdout

    def run(self, line, until):
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        self.wait(until)

    def complete(self, line, until):
        """Types a line and Tab."""
        self._tmux("send-keys", "C-u")
        self._tmux("send-keys", "-l", line)
        self.wait(line)
        self._tmux("send-keys", "Tab")
        return self.wait(until)

    def wait(self, text):
        over = time.monotonic() + 60
        while text not in (shown := self._tmux("capture-pane", "-p", "-J")):
            assert time.monotonic() < over, f"no {text!r} in:\n{shown}"
            time.sleep(0.05)
        return shown

    def close(self):
        self._tmux("kill-server", check=False)


SOURCE = {
    "bash": 'eval "$(dgm completion bash)"; echo re""ady',
    "zsh": 'eval "$(dgm completion zsh)"; echo re""ady',
    "fish": 'dgm completion fish | source; echo re""ady',
}


@pytest.mark.starts_processes
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_what_is_typed(shell, surroundings):
    for program in (shell, "tmux"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    terminal = Terminal(surroundings[0], shell)
    try:
        terminal.run(SOURCE[shell], "\nready")
        terminal.complete("dgm stat", "dgm status ")
        terminal.complete("dgm show alp", "dgm show alpha-run ")
        terminal.complete("dgm show alpha-run be", "dgm show alpha-run best")
        terminal.complete("dgm run --set policy.name=sic", "dgm run --set policy.name=sica")
        shown = terminal.complete("dgm run --benchmark swebench:mul", "swebench:multilingual")
        assert "Traceback" not in shown
        assert "rror" not in shown
    finally:
        terminal.close()
