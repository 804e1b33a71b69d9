"""Candidates for an argument or an option's value: runs, agents, settings, suites, policies."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.paths import SEEDS

AGENTS = 200
"""Maximum number of agents offered, the newest first."""
KINDS_BY_METAVAR: Mapping[str, str] = {
    "RUN": "runs",
    "RUN_OR_FILE": "runs",
    "AGENT": "agents",
    "OTHER": "agents",
    "ID": "agents",
    "RUN AGENT": "run_and_agents",
    "RUN:AGENT": "run_colon_agent",
    "KEY=VALUE": "settings",
    "RECIPE": "recipes",
    "PAGE": "pages",
    "MODEL": "models",
    "TASK": "tasks",
}
KINDS_BY_NAME: Mapping[str, str] = {
    "benchmark": "suites",
    "model": "models",
    "policy": "policies",
    "policies": "policies",
    "operator": "operators",
    "sandbox": "sandboxes",
    "kind": "kinds",
    "seed_agent": "seeds",
    "name": "suites",
    "task": "tasks",
    "task_ids": "tasks",
    "families": "families",
    "family": "families",
    "predictions": "files",
}
"""Kinds of the parameters whose metavar says nothing."""
SETTING_KINDS: Mapping[str, str] = {
    "benchmark": "suites",
    "model": "models",
    "models.solve": "models",
    "models.improve": "models",
    "models.diagnose": "models",
    "operator": "operators",
    "policy.name": "policies",
    "sandbox": "sandboxes",
    "policy.gate": "gates",
    "policy.parent": "parent_rules",
    "policy.evaluation": "evaluation_rules",
    "policy.task": "task_rules",
    "policy.recommendation": "recommendations",
    "benchmarks.swebench.subset": "subsets",
}
PLUGGED = {
    "policies",
    "operators",
    "models",
    "gates",
    "parent_rules",
    "evaluation_rules",
    "task_rules",
    "recommendations",
    "sandboxes",
}


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    """One word that fits the typed beginning."""

    value: str
    help: str = ""
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class CompletionQuery:
    """The state of the command line at the cursor."""

    typed: str
    """The beginning of the word."""
    given: Mapping[str, Any]
    """The line's other arguments, by the parameter's name."""
    outline: Mapping[str, Any]


def parameter_kind(parameter: Mapping[str, Any]) -> str:
    """Return the kind of words that a parameter of the outline takes; empty if unknown."""
    if parameter["flag"]:
        return ""
    metavar = parameter["metavar"].replace("…", "").strip("[] ")
    found = KINDS_BY_METAVAR.get(metavar)
    if found is None and (metavar in ("", parameter["name"].upper()) or parameter["option"]):
        found = KINDS_BY_NAME.get(parameter["name"])
    # The name of a new run cannot be completed.
    return "" if found == "suites" and parameter["option"] and parameter["name"] == "name" else found or ""


def find_candidates(kind: str, asked: CompletionQuery) -> Sequence[CompletionCandidate]:
    """Return the words of a kind that begin with what is typed."""
    source = _SOURCES.get(kind)
    found: list[CompletionCandidate] = []
    # A damaged run or an unreadable folder ends the list early, and has no other effect.
    with contextlib.suppress(Exception):
        for each in source(asked) if source else _name_candidates(kind, asked):
            found.append(each)  # noqa: PERF402  (keeps what came before a fault)
    return [each for each in found if each.value.startswith(asked.typed) or each.kind in ("file", "dir")]


def _run_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    from dgm.archive.finding import archive_folders, find_runs_in
    from dgm.paths import EXAMPLES

    names = dict.fromkeys(path.name for folder in archive_folders() for path in find_runs_in(folder))
    for name in names:
        yield CompletionCandidate(name, "run")
    for name, example in EXAMPLES.items():
        yield CompletionCandidate(name, example.what)
    if _is_path(asked.typed):
        yield CompletionCandidate(asked.typed, kind="file")


def _agent_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    run = next((asked.given[name] for name in ("run_name", "run") if asked.given.get(name)), None)
    if run:
        yield from _candidates_of_run(str(run))


def _candidates_of_run(run: str) -> Iterator[CompletionCandidate]:
    from dgm.archive.finding import find_run
    from dgm.archive.log_file import open_to_read

    yield CompletionCandidate("best", "the agent that the policy recommends")
    yield CompletionCandidate("seed", "agent 0")
    with contextlib.closing(open_to_read(find_run(run) / "events.db")) as log:
        query = "SELECT id, operator, rationale FROM agents ORDER BY id DESC LIMIT ?"
        rows = log.execute(query, (AGENTS,)).fetchall()
    for agent, operator, rationale in reversed(rows):
        yield CompletionCandidate(str(agent), f"{operator}: {rationale}")


def _run_and_agents(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    """Yield candidates for ``[RUN AGENT…]``: the first word is a run, the others are its agents."""
    given = asked.given.get("names") or ()
    yield from _candidates_of_run(str(given[0])) if given else _run_candidates(asked)


def _run_colon_agent(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    run, colon, _ = asked.typed.rpartition(":")
    if colon:
        yield from (replace(each, value=f"{run}:{each.value}") for each in _candidates_of_run(run))
    else:
        yield from (
            CompletionCandidate(f"{each.value}:", each.help, "part")
            for each in _run_candidates(asked)
            if each.kind == "plain"
        )


def _setting_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    name, equals, typed = asked.typed.partition("=")
    rows = asked.outline["settings"]
    if not equals:
        seen = set[str]()
        for row in rows:
            value = row["name"] if row["name"].endswith(".") else row["name"] + ("." if row["table"] else "=")
            if value not in seen:
                seen.add(value)
                yield CompletionCandidate(value, row["help"], "part")
        return
    choices: list[str] = next((row["choices"] for row in rows if row["name"] == name), [])
    inner = CompletionQuery(typed, asked.given, asked.outline)
    values = (
        find_candidates(SETTING_KINDS[name], inner)
        if name in SETTING_KINDS
        else map(CompletionCandidate, choices)
    )
    yield from (replace(each, value=f"{name}={each.value}") for each in values)


def _suite_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    from dgm.paths import asset

    before, _, typed = asked.typed.rpartition("+")
    before = f"{before}+" if before else ""
    for name in _find_folders_with(asset("benchmarks"), "suite.toml"):
        yield CompletionCandidate(before + name, "suite")
    formats: Mapping[str, Mapping[str, Any]] = asked.outline["formats"]
    for kind, found in formats.items():
        for name in found["data_sets"]:
            yield CompletionCandidate(f"{before}{kind}:{name}", found["meaning"])
        if not found["data_sets"]:
            yield CompletionCandidate(f"{before}{kind}:", found["meaning"], "part")
    for name in _list_plugins("benchmarks"):
        yield CompletionCandidate(before + name, "plug-in")
    for name in _find_folders_with(Path(), "suite.toml"):
        yield CompletionCandidate(before + name, "folder")
    kind, colon, rest = typed.partition(":")
    form = formats.get(kind) if colon else None
    names_file = form is not None and not form["is_folder"]
    if form and names_file and rest and not any(name.startswith(rest) for name in form["data_sets"]):
        yield CompletionCandidate(typed, kind="file")
    elif (form and not names_file) or _is_path(typed):
        yield CompletionCandidate(typed, kind="dir")


def _operator_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    """Yield operators; several are joined by ``+``, and none is offered twice."""
    before = asked.typed.rpartition("+")[0]
    taken = before.split("+") if before else []
    for each in _name_candidates("operators", asked):
        if each.value not in taken:
            yield replace(each, value="+".join([*taken, each.value]))


def _task_candidates(asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    """Yield the tasks of the suite on the line, if that is a folder of tasks."""
    from dgm.paths import asset

    suite = str(asked.given.get("name") or asked.given.get("benchmark") or "starter")
    for folder in (asset("benchmarks", suite), Path(suite)):
        yield from (CompletionCandidate(name) for name in _find_folders_with(folder / "tasks", "task.toml"))


def _page_candidates() -> Iterator[CompletionCandidate]:
    from dgm.cli.docs import find_pages

    yield from map(CompletionCandidate, find_pages())


def _name_candidates(kind: str, asked: CompletionQuery) -> Iterator[CompletionCandidate]:
    """Yield the built-in names of a kind and those of plug-ins."""
    yield from map(CompletionCandidate, asked.outline["names"].get(kind, ()))
    if kind in PLUGGED:
        yield from (CompletionCandidate(name, "plug-in") for name in _list_plugins(kind))


def _list_plugins(group: str) -> Iterable[str]:
    from importlib.metadata import entry_points

    return sorted(point.name for point in entry_points(group=f"dgm.{group}"))


def _find_folders_with(folder: Path, file: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208  (names are wanted)
            if (folder / name / file).is_file():
                yield name


def _is_path(typed: str) -> bool:
    return typed.startswith((".", "~")) or "/" in typed


_SOURCES: Mapping[str, Callable[[CompletionQuery], Iterable[CompletionCandidate]]] = {
    "runs": _run_candidates,
    "agents": _agent_candidates,
    "run_and_agents": _run_and_agents,
    "run_colon_agent": _run_colon_agent,
    "settings": _setting_candidates,
    "suites": _suite_candidates,
    "operators": _operator_candidates,
    "tasks": _task_candidates,
    "pages": lambda _: _page_candidates(),
    "seeds": lambda asked: [*map(CompletionCandidate, SEEDS), CompletionCandidate(asked.typed, kind="dir")],
    "folders": lambda asked: [CompletionCandidate(asked.typed, kind="dir")],
    "files": lambda asked: [CompletionCandidate(asked.typed, kind="file")],
}
