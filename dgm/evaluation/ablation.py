"""Parts of an agent that can be left out one at a time, and the effect of each.

Parts are sections, skills, sub-agents, hooks and MCP servers. The whole agent is compared with the agent without the
part, on the same tasks.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, log2
from pathlib import PurePosixPath

from dgm.archive.snapshots import tree_id
from dgm.domain import Snapshot, TaskId, Verdict
from dgm.errors import UserError
from dgm.evaluation.schedule import AgentResult
from dgm.meta.contract import Contract
from dgm.stats import holm, matched_interval, sign_flip, tasks_needed

LEVEL = 0.05
"""Greatest chance of calling any part's effect where no part has one."""
DIFFERENCE = 0.2
"""Difference of resolved shares for which the number of tasks is computed that would show it."""
SETTINGS = ("settings.json", ".mcp.json", "mcp.json")
"""Names of the files that hold hooks and MCP servers."""
FOR_PEOPLE = ("README.md", "CHANGELOG.md", "LICENSE.md")
"""Names of Markdown files that no agent's program reads by itself."""
WHOLE_FILES = ("agents", "agent", "commands", "command")
"""Folders, below one whose name begins with a dot, where each file is a sub-agent or a command."""
PREAMBLE = "(beginning)"
NAME_CHARS = 60
_HEADING = re.compile(r" {0,3}#{1,2}[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")

NamedVariants = Iterator[tuple[str, Snapshot]]
"""Name of a part, and the agent's folder without it."""


def remove_each_part(source: Snapshot, contract: Contract) -> Mapping[str, Snapshot]:
    """Return the agent's folder without each of its parts, by the part's name, such as ``CLAUDE.md#Testing``.

    Parts are sections of editable Markdown files down to the second level of headings, folders of skills, files of
    sub-agents and commands, hooks with their scripts, and MCP servers.

    Raises:
        UserError: a file of settings cannot be read.
    """
    without: dict[str, Snapshot] = {}
    trees = {tree_id(source)}
    for name, rest in _iter_parts(source, contract):
        if (tree := tree_id(rest)) not in trees:
            trees.add(tree)
            same = sum(other == name or other.startswith(f"{name} (") for other in without)
            without[f"{name} ({same + 1})" if same else name] = rest
    return without


def _iter_parts(source: Snapshot, contract: Contract) -> NamedVariants:
    skills = sorted(path.removesuffix("/SKILL.md") for path in source if path.endswith("/SKILL.md"))
    for path in sorted(source):
        file = PurePosixPath(path)
        if any(path.startswith(f"{skill}/") for skill in skills):
            continue
        if file.parent.name in WHOLE_FILES and path.startswith("."):
            yield path, _without_files(source, path)
        elif file.name in SETTINGS:
            try:
                yield from _settings_parts(source, path)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise UserError(f"{path}: its hooks and MCP servers cannot be read: {error}") from error
        elif file.suffix == ".md" and file.name not in FOR_PEOPLE and contract.may_change(path):
            yield from _sections(source, path)
    for skill in skills:
        yield skill, _without_files(source, *(path for path in source if path.startswith(f"{skill}/")))


def _without_files(source: Snapshot, *paths: str) -> Snapshot:
    return {path: entry for path, entry in source.items() if path not in paths}


def _with_text(source: Snapshot, path: str, text: str) -> Snapshot:
    return {**source, path: replace(source[path], data=text.encode("utf-8", "surrogateescape"))}


def _sections(source: Snapshot, path: str) -> NamedVariants:
    """Yield the sections of a Markdown file that hold more than a heading; front matter belongs to no section."""
    lines = source[path].data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    start = 0
    if lines and lines[0].rstrip() == "---":
        start = next((at + 1 for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    starts, fence = {start: PREAMBLE}, ""
    for at, line in enumerate(lines[start:], start):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and (heading := _HEADING.match(line.rstrip("\r\n"))):
            starts[at] = heading[1]
    ends = [*list(starts)[1:], len(lines)]
    for (begin, title), end in zip(starts.items(), ends, strict=True):
        body = lines[begin if title == PREAMBLE else begin + 1 : end]
        if "".join(body).strip():
            rest = "".join(lines[:begin] + lines[end:])
            yield f"{path}#{title[:NAME_CHARS]}", _with_text(source, path, rest)


def _settings_parts(source: Snapshot, path: str) -> NamedVariants:
    settings = json.loads(source[path].data)
    for server in settings.get("mcpServers", {}):
        rest = deepcopy(settings)
        del rest["mcpServers"][server]
        yield f"{path}#{server[:NAME_CHARS]}", _with_text(source, path, json.dumps(rest, indent=2) + "\n")
    for event, groups in settings.get("hooks", {}).items():
        for at, group in enumerate(groups):
            for number, hook in enumerate(group["hooks"]):
                rest = deepcopy(settings)
                hooks = rest["hooks"]
                del hooks[event][at]["hooks"][number]
                hooks[event] = [group for group in hooks[event] if group["hooks"]]
                rest["hooks"] = {name: groups for name, groups in hooks.items() if groups}
                command = hook.get("command", "")
                script = max(
                    (file for file in source if "/" in file and file in command), key=len, default=""
                )
                variant = _with_text(source, path, json.dumps(rest, indent=2) + "\n")
                label = PurePosixPath(script or command).name[:NAME_CHARS]
                shared = script in json.dumps(rest)
                yield f"{path}#{event} {label}", variant if shared else _without_files(variant, script)


class Effect(StrEnum):
    """The verdict on a part."""

    HELPS = "helps"
    HURTS = "hurts"
    NOT_SHOWN = "no effect shown"
    NEEDED = "needed to start"


@dataclass(frozen=True, slots=True)
class PartEffect:
    """The effect of one part. A pair is one attempt at a task that both agents have a verdict on."""

    part: str
    tokens: int
    """Estimated input tokens that the part adds to each turn."""
    effect: Effect
    pairs: int = 0
    tasks: int = 0
    with_part: int = 0
    """Pairs that the whole agent resolved."""
    without_part: int = 0
    """Pairs that the agent without the part resolved."""
    difference: float = 0.0
    """Mean over tasks of the resolved share with the part minus without it."""
    interval: tuple[float, float] = (-1.0, 1.0)
    """The 95 % interval of ``difference``, for this part alone."""
    p: float = 1.0
    """The p-value of ``sign_flip`` over tasks, adjusted by ``holm`` for the number of parts."""


def judge_parts(
    complete: AgentResult, without: Mapping[str, AgentResult], tokens: Mapping[str, int]
) -> Sequence[PartEffect]:
    """Return the effect of each part.

    Args:
        complete: results of the agent with all parts.
        without: results of the agent without a part, by the part.
        tokens: input tokens that each part adds to a turn.
    """
    pairs = {part: _pair_attempts(complete, result) for part, result in without.items()}
    p_values = holm([sign_flip([_sum(each) for each in tasks.values()]) for tasks in pairs.values()])
    return [
        _judge(part, tokens[part], tasks, p) for (part, tasks), p in zip(pairs.items(), p_values, strict=True)
    ]


def fewest_tasks(parts: int) -> int:
    """Return the number of tasks that must change in the same direction before one of ``parts`` is shown to matter."""
    return 1 + ceil(log2(parts / LEVEL))


def tasks_to_show(parts: int) -> int:
    """Return the tasks with which a ``DIFFERENCE`` in one direction is shown in 80 % of ablations of so many parts."""
    # The first step of Holm's method divides the level by the number of parts.
    return tasks_needed(DIFFERENCE, 0.0, alpha=LEVEL / parts)


def _pair_attempts(one: AgentResult, two: AgentResult) -> Mapping[TaskId, list[tuple[bool, bool]]]:
    others = {(done.task, done.attempt): done.verdict is Verdict.RESOLVED for done in two.graded}
    pairs: dict[TaskId, list[tuple[bool, bool]]] = {}
    for done in one.graded:
        if (done.task, done.attempt) in others:
            pair = (done.verdict is Verdict.RESOLVED, others[done.task, done.attempt])
            pairs.setdefault(done.task, []).append(pair)
    return pairs


def _sum(pairs: Sequence[tuple[bool, bool]]) -> int:
    return sum(one - two for one, two in pairs)


def _judge(part: str, tokens: int, tasks: Mapping[TaskId, list[tuple[bool, bool]]], p: float) -> PartEffect:
    shares = [_sum(pairs) / len(pairs) for pairs in tasks.values()]
    difference = sum(shares) / len(shares) if shares else 0.0
    effect = Effect.NOT_SHOWN
    if p <= LEVEL:
        effect = Effect.HELPS if difference > 0 else Effect.HURTS
    every = [pair for pairs in tasks.values() for pair in pairs]
    return PartEffect(
        part=part,
        tokens=tokens,
        effect=effect,
        pairs=len(every),
        tasks=len(tasks),
        with_part=sum(one for one, _ in every),
        without_part=sum(two for _, two in every),
        difference=difference,
        interval=matched_interval(shares),
        p=p,
    )
