"""Searches on the models of providers that the wire server stands in for."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.program import PATIENCE_S, Program
from tests.support.wire_server import Kind, Rule, Script

KEY = "sk-proj-Qz7XvT4nWb2Lm9RkYc3HsJd8Fg6Pa1Ue5"
"""Distinctive: it is looked for in every byte that a run leaves."""
HANGS = (Kind.HANG, Kind.HANG_MIDWAY)
PASSING = tuple(
    kind
    for kind in Kind
    if kind not in (Kind.REFUSAL, Kind.CONTEXT_LENGTH, Kind.WRONG_KEY, Kind.FORBIDDEN, Kind.NO_CREDIT)
)
"""Every way to go wrong that a search must not notice, odd but whole answers included."""


@dataclass(frozen=True)
class Provider:
    """One way to reach a model."""

    model: str
    section: str
    """Its settings: ``providers.<section>``."""
    key_env: str
    dialect: str
    """The end of the path that it is asked at."""
    settings: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        """The model's name as its provider knows it."""
        return self.model.partition("/")[2]

    def words(self, url: str, *more: str, timeout_s: float = 30.0) -> list[str]:
        """What the command line needs to reach a wire server at ``url``; ``more``: settings of the provider."""
        address = url if self.section == "anthropic" else f"{url}/v1"
        given = [f"base_url={address}", "backoff_s=0.01", f"timeout_s={timeout_s}", *self.settings, *more]
        return ["--model", self.model, *(word for each in given for word in self.assign(each))]

    def assign(self, setting: str) -> list[str]:
        """One setting of the provider."""
        return ["--set", f"providers.{self.section}.{setting}"]


PROVIDERS = {
    "openai": Provider("openai/gpt-6.2-sol", "openai", "OPENAI_API_KEY", "/responses"),
    "openai-chat": Provider(
        "openai/gpt-6.2-sol", "openai", "OPENAI_API_KEY", "/chat/completions", ("api=chat",)
    ),
    "anthropic": Provider("anthropic/claude-haiku-5-5", "anthropic", "ANTHROPIC_API_KEY", "/messages"),
    "compatible": Provider(
        "openai-compatible/local-coder", "openai-compatible", "OPENAI_COMPATIBLE_API_KEY", "/chat/completions"
    ),
}


def faults(share: float, seed: int, timeout_s: float) -> Script:
    """About ``share`` of all calls goes wrong, in every way that passes, each as often as another."""
    each = 1 - (1 - share) ** (1 / (len(PASSING) + 2))
    rules = [Rule(kind, share=each, seconds=timeout_s * 2 if kind in HANGS else 0.3) for kind in PASSING]
    rules += [Rule(Kind.RATE_LIMIT, share=each, retry_after_s=0.05)]
    rules += [Rule(Kind.RATE_LIMIT, share=each, retry_after_ms=40)]
    return Script(rules, seed=seed)


def rows(run: Path, query: str) -> list[tuple[object, ...]]:
    """What SQL finds in a run's log."""
    connection = sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def events(run: Path, kind: str) -> list[dict[str, object]]:
    """The bodies of all events of a kind, in order."""
    found = rows(run, f"select body from events where kind = '{kind}' order by seq")
    return [json.loads(str(body)) for (body,) in found]


@contextmanager
def begun(program: Program, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command in the background; it does not outlive the context."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dgm", *words],
        env=program.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(holds: Callable[[], bool], process: subprocess.Popen[str], seconds: float = PATIENCE_S) -> None:
    """Waits for something that a command brings about."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, f"exit {process.returncode}: {process.communicate()}"
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def count(run: Path, what: str) -> int:
    """Rows of a table or view, with what follows its name; 0 before there is a log."""
    try:
        return int(str(rows(run, f"select count(*) from {what}")[0][0]))
    except sqlite3.OperationalError:
        return 0


ANSWERED = "spend where kind = 'model_called' or (kind = 'model_learned' and input_tokens > 0)"
"""Calls that a provider answered, the checks of models among them."""
TWICE = "(select 1 from spend where kind = 'model_called' group by action, number having count(*) > 1)"
"""Calls that are recorded more than once."""
