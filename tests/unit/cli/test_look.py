"""What ``dgm status`` and ``dgm show`` print for programs, and what commands refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.cli.main import main
from dgm.views.agents import AgentView, DiffView, LineageView, TreeView
from dgm.views.run import RunView
from dgm.views.run_list import RunListView
from dgm.views.tasks import AgentTaskView
from tests.support.runs.paid import small

pytestmark = pytest.mark.starts_processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("archive") / "paid"
    small(where).run.close()
    return where


def dgm(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("words", "view"),
    [
        (["status", "RUN"], RunView),
        (["status", "RUN/.."], RunListView),
        (["show", "RUN"], TreeView),
        (["show", "RUN", "1"], AgentView),
        (["show", "RUN", "2", "0", "--diff"], DiffView),
        (["show", "RUN", "--lineage"], LineageView),
        (["show", "RUN", "seed", "--task", "ledger-a"], AgentTaskView),
    ],
)
def test_json_is_a_view_and_text_is_plain(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], view: type
) -> None:
    words = [word.replace("RUN", str(folder)) for word in words]
    code, out, err = dgm(capsys, *words, "--json")
    assert (code, err) == (0, "")
    view.model_validate_json(out)  # type: ignore[attr-defined]
    code, out, err = dgm(capsys, *words)
    assert (code, err) == (0, "")
    assert out and "\x1b" not in out


def test_a_run_goes_before_an_agent_folder_of_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / folder.name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DGM_ARCHIVE", str(folder.parent))
    code, out, _ = dgm(capsys, "status", folder.name, "--json")
    assert (code, RunView.model_validate_json(out).run) == (0, folder.name)


def test_events_are_printed_and_a_finished_log_is_not_followed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = dgm(capsys, "show", folder, "--events", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    code, out, _ = dgm(capsys, "show", folder, "--follow", "--json")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [event["seq"] for event in events[-10:]]
    assert len(dgm(capsys, "show", folder, "--events")[1].splitlines()) == len(events)


def test_ctrl_c_ends_following_quietly(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dgm.archive.run.writer", lambda _: object())
    monkeypatch.setattr("dgm.archive.run.time.sleep", press)
    code, out, err = dgm(capsys, "show", folder, "--follow")
    assert (code, len(out.splitlines()), err) == (0, 10, "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["status", "no-such-run"], "no-such-run"),
        (["status", "--watch"], "--watch: needs the name of a run"),
        (["show", "RUN", "7"], "no agent '7'"),
        (["show", "RUN", "1", "7", "--diff"], "no agent '7'"),
        (["show", "RUN", "1", "2"], "--diff: a second agent ('2')"),
        (["show", "RUN", "--lineage", "--events"], "--events: cannot be combined"),
        (["show", "RUN", "--task", "a", "--diff"], "--task: cannot be combined"),
        (["show", "RUN", "1", "--events"], "--events: prints the log of the whole run"),
        (["show", "RUN", "--diff", "--follow"], "--follow: only follows events"),
        (["show", "RUN", "1", "--task", "ledger-z"], "did you mean 'ledger-a'?"),
        (["show"], "RUN"),
        (["list"], "'dgm list' is now 'dgm status'"),
        (["log", "RUN"], "is now 'dgm show RUN --events'"),
        (["status", "pai"], "did you mean 'paid'?"),
        (["show", "RUN", "zz"], "give an id from 0 to"),
        (["frobnicate"], "there is no command 'frobnicate'"),
        (["rnu"], "did you mean 'run'?"),
        (["run", "--model", "offline", "--name", "paid"], "exists already"),
        (["run", "--benchmark", "startr"], "startr"),
        (["run", "--model", "gpt-99"], "gpt-99"),
        (["run", "--policy", "hmg"], "did you mean 'hgm'?"),
        (["run", "--set", "policy.alpha=0.5"], "does nothing with the gate 'lineage'"),
        (["run", "--set", "operator=self-edti"], "did you mean 'self-edit'?"),
        (["run", "--set", "sandbox=none"], "sandbox"),
        (["run", "--workers", "0"], "workers"),
        (["run", "--max-evaluations", "0"], "evaluations"),
        (["run", "--model", "offline", "--max-usd", "5"], "never runs out, for the model offline"),
        (["run", "--set", "limits.cals=3"], "did you mean 'limits.calls'?"),
        (["run", "absent.toml"], "no such settings file"),
        (["run", "--agent", "/nowhere/at/all"], "/nowhere/at/all"),
        (["run", "--model", "offline", "--name", "../outside"], "name"),
        (["run", "--model", "offline", "--seed", "-1"], "seed = -1: expected a number from 0 on"),
        (["run", "--nmae", "x"], "unknown option: --nmae"),
        (["resume", "RUN", "--max-evaluations", "-1"], "-1"),
        (["solve", "RUN", ".", "x"], "RUN:AGENT"),
        (["solve", "RUN:best", "/nowhere", "x"], "/nowhere"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("DGM_ARCHIVE", str(folder.parent))
    code, out, err = dgm(capsys, *(word.replace("RUN", str(folder)) for word in words))
    # On a slow machine, long steps are reported as well.
    lines = [line for line in err.splitlines() if not line.endswith(" s)")]
    assert (code, out, len(lines)) == (2, "", 1)
    assert problem in err
    assert [path.name for path in folder.parent.iterdir()] == ["paid"]


@pytest.mark.starts_processes
@pytest.mark.parametrize("words", [["status"], ["show"], ["show", "1"]])
def test_reading_a_run_loads_no_slow_library(folder: Path, words: list[str]) -> None:
    code = (
        "import sys\nfrom dgm.cli.main import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    assert not end.code\nprint(' '.join(sys.modules))"
    )
    command, *rest = words
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(folder), *rest], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {"scipy", "requests", "networkx", "docker", "git", "openai", "textual", "asyncio"} & loaded
