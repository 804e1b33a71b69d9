"""Commands derived from functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from dgm.cli.app import derive, run_function
from dgm.consents import ConsentNeeded, Subject
from dgm.errors import Hint, UserError


class Plugin:
    """A value that no command line can give."""


class View(BaseModel):
    arguments: dict[str, Any]
    exit_code: int = 0


def judge(
    run: str | Path,
    *agents: str | Plugin,
    split: Literal["search", "holdout"] = "holdout",
    max_usd: float | None = None,
    tasks: Sequence[str] = (),
    policy: str | Plugin | None = None,
    plugin: Plugin | None = None,
    settings: Mapping[str, Any] | Sequence[str] | None = None,
    worlds: int | str = 20,
    watcher: object = None,
) -> View:
    """Let agents work on every task of a split.

    Args:
        run: A run's name or folder.
        agents: Ids of agents.
        split: Tasks to work on.
        max_usd: Limit in USD.
        tasks: Only this task; repeatable.
        policy: Search policy.
        plugin: Never an option.
        settings: Any setting.
        worlds: Number of worlds, or FROM:TO.
        watcher: Never an option.
    """
    code = 3 if max_usd == 0 else 0
    return View(arguments={**locals(), "watcher": repr(watcher)}, exit_code=code)


command = derive(
    judge,
    lambda view: print(view.arguments),
    watcher=lambda: SimpleNamespace(place="here"),
    names={"tasks": "--task"},
)


def run(*words: str) -> int:
    return run_function(command, words, "dgm judge")


def test_signature_becomes_arguments_and_options(capsys):
    assert (
        run("r", "1", "best", "--max-usd", "2", "--task", "a", "--task", "b", "--set", "x=1", "--json") == 0
    )
    assert '"tasks": [\n      "a",\n      "b"\n    ]' in (out := capsys.readouterr().out)
    assert '"settings": [\n      "x=1"\n    ]' in out
    assert '"max_usd": 2.0' in out
    assert "'here'" in out


def test_view_gives_the_exit_code():
    assert run("r", "--max-usd", "0") == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["r", "--max-usd", "x"], "--max-usd"),
        (["r", "--splt", "search"], "--split"),
        (["r", "--split", "no"], "holdout"),
        (["r", "--plugin", "x"], "--plugin"),
        (["r", "--watcher", "x"], "--watcher"),
        (["r", "--policy", ""], "--policy: must not be empty"),
        ([], "RUN"),
        ([""], "RUN: must not be empty"),
        (["r", ""], "AGENTS: must not be empty"),
    ],
)
def test_wrong_words_are_user_errors(words, message):
    with pytest.raises(UserError, match=message) as caught:
        run(*words)
    assert "\n" not in str(caught.value)


def test_consent_is_asked_for_or_given_in_advance(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    subject = Subject("an endpoint", "an endpoint")

    def use() -> View:
        """Use an endpoint."""
        if not subject.is_agreed():
            raise ConsentNeeded("no", "use it", [subject])
        return View(arguments={})

    trusting = derive(use, lambda view: None, trust=True)
    with pytest.raises(ConsentNeeded):
        run_function(trusting, [], "dgm use")
    assert run_function(trusting, ["--trust"], "dgm use") == 0
    assert run_function(trusting, [], "dgm use") == 0


def test_errors_speak_the_language_of_their_front_end():
    hint = Hint("to continue", "resume", ("my run",), {"max_usd": ..., "yes": True})
    error = UserError("0: must be above 0", argument="max_usd", hint=hint)
    assert (
        error.in_shell()
        == "--max-usd: 0: must be above 0; to continue: dgm resume 'my run' --max-usd USD --yes"
    )
    assert (
        str(error)
        == "max_usd: 0: must be above 0; to continue: dgm.open('my run').resume(max_usd=..., yes=True)"
    )
    setting = UserError("must be above 0", argument="budget.usd")
    assert setting.in_shell() == "--set budget.usd: must be above 0"
