"""The command that repeats a run, with its versions, seed and commits."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dgm.archive.run import Run, RunKind, format_assignments
from dgm.config import Settings, read_frozen
from dgm.config.toml_files import format_key, format_value
from dgm.domain import AgentId
from dgm.views.run import changes_of
from dgm.views.values import View

FLAGS: Mapping[str, str] = {
    "benchmark": "--benchmark",
    "model": "--model",
    "policy.name": "--policy",
    "workers": "--workers",
    "seed": "--seed",
    "seed_agent": "--agent",
    "budget.evaluations": "--max-evaluations",
    "budget.usd": "--max-usd",
}
"""Settings with an option of their own; all others are given by ``--set``."""
ALWAYS = ("benchmark", "model", "seed")
"""Settings that are given even at their defaults, because a default may change."""
_SESSIONS = "SELECT count(*) FROM events WHERE kind = 'run_started' AND seq <= ?"


class ReproductionView(View):
    """What is needed to repeat a run."""

    command: str | None
    """The command; None if the run is no search of its own."""
    replays: tuple[str, ...]
    """Commands that check the record without paying for models."""
    versions: dict[str, str]
    seed: int
    """The random seed."""
    commits: dict[int, str]
    """Commits of the seed and the best agent."""
    sandbox: str
    sessions: int
    """Number of times a process began to write the run; more than one if it was resumed."""
    changed: tuple[str, ...]
    """Settings that were changed at a resume, at their present values; the command gives the earlier ones."""


def read_reproduction(run: Run, best: AgentId) -> ReproductionView:
    """Return what is needed to repeat a run.

    Raises:
        UserError: its settings are not in the form that dgm writes.
    """
    config, name, agents = run.config, shlex.quote(run.name), run.tree.agents
    replays = (
        f"dgm replay {name}",
        f"dgm replay {name} {best} --what lineage",
        f"dgm replay {name} {best} --what evaluations",
    )
    is_search = run.kind in (RunKind.SEARCH, RunKind.REPLAY)
    return ReproductionView(
        command=run_command_text(config) if is_search else None,
        replays=replays if is_search else (),
        versions={part: str(version) for part, version in config.get("versions", {}).items()},
        seed=config["settings"]["seed"],
        commits={agent: agents[agent].commit for agent in dict.fromkeys((agents[0].id, best))},
        sandbox=str(config.get("sandbox", "")),
        sessions=run.store.query(_SESSIONS, (run.tree.seq,))[0][0],
        changed=tuple(format_assignments(changes_of(run))),
    )


def run_command_text(config: Mapping[str, Any]) -> str:
    """Return the ``dgm run`` that gives the frozen settings of ``config`` again, as one line of a shell.

    Raises:
        UserError: the settings are not in the form that dgm writes.
    """
    frozen = read_frozen(config["settings"], "run.json")
    usual = Settings().model_dump(mode="json")
    words = ["dgm", "run"]
    for path, value in _iter_leaves(frozen.model_dump(mode="json")):
        key = ".".join(path)
        if value == _value_at(usual, path) and key not in ALWAYS:
            continue
        if key in FLAGS:
            words += [FLAGS[key], str(value)]
        else:
            words += ["--set", f"{format_key(path)}={format_value(value)}"]
    return shlex.join(words)


def _iter_leaves(
    table: Mapping[str, Any], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _iter_leaves(value, (*prefix, name))
        elif value is not None:
            # TOML has no null. It needs none: every setting that can be None is None by default.
            yield (*prefix, name), value


def _value_at(table: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401  (any value of a settings file)
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table
