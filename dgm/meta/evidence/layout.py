"""The evidence folder: an index, the first parent's cases, and a folder for each agent that is shown.

Nothing is summarised. If the content exceeds the folder's bound, whole files are left out, starting with the last
agents in the order; the index names the omitted files.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from dgm.domain import AgentId, Entry, Snapshot
from dgm.meta.evidence.cases import PROMPTS_FILE, cut_middle
from dgm.meta.evidence.flat import FILES, folder_name, prompts_of
from dgm.protocols import Case, Member

INDEX = "README.md"
LINK = 0o120000
LEAST_CUT = 4000
"""Minimum bytes of a cut file: if less than this would fit, the file is left out."""
MOST_PART, MOST_PATH = 255, 1000
"""Maximum bytes of a file's name, as file systems have it, and of a path below an agent's source."""
_KEPT = 180
"""Bytes that are kept of a name that is too long."""
_TAKEN = re.compile(r"%(?:[0-9A-F]{2}|~)")
"""Pattern in every escaped name; no unescaped name matches it."""

_HEAD = """# Evidence

What coding agents did on problems that may be learned from: whole conversations, patches, the names of failed tests
with a line each. `agents/N/` tells of agent N: whose child it is, what it solved, its source, what it changed against
its parent. Nothing here can be changed.
"""


@dataclass(frozen=True, slots=True)
class EvidenceContents:
    """The agents and cases in the folder, in the order of their importance."""

    parents: Sequence[Member]
    """The parents; the source of a single one, or the merge of two, is in the repository and is not shown again."""
    members: Sequence[Member]
    cases: Sequence[Case]

    def cases_of(self, agent: AgentId) -> list[Case]:
        """Return the agent's cases, in order."""
        return [case for case in self.cases if case.evaluation.agent == agent]


def evidence_folder(about: EvidenceContents, folder_bytes: int) -> Snapshot:
    """Return the folder; empty if there are no cases.

    Args:
        about: the agents and cases to show.
        folder_bytes: bound on the whole folder, its index included unless that alone is larger.
    """
    if not about.cases:
        return {}
    wanted = dict(_files(about))
    room = folder_bytes - len(_index(about, wanted, [*wanted]))
    kept: dict[str, bytes] = {}
    own = _case_folders(about)
    for path, data in wanted.items():
        if len(data) > room and room >= LEAST_CUT and path.startswith(own):
            data = cut_middle(data, room - 100)
        if len(data) <= room:
            kept[path] = data
            room -= len(data)
    left = [path for path in wanted if path not in kept]
    kept[INDEX] = _index(about, wanted, left)
    return {path: Entry(data) for path, data in kept.items()}


def _case_folders(about: EvidenceContents) -> tuple[str, ...]:
    """Return the folders of the first parent's cases, of which as much is shown as fits."""
    return tuple(f"cases/{folder_name(case)}/" for case in about.cases_of(about.parents[0].agent.id))


def _files(about: EvidenceContents) -> Iterator[tuple[str, bytes]]:
    """Yield all files, the most important first."""
    everyone = (*about.parents, *about.members)
    for member in everyone:
        yield f"agents/{member.agent.id}/README.md", _describe_agent(member)
        yield f"agents/{member.agent.id}/verdicts.md", _verdicts(member)
    first = everyone[0]
    yield from _cases("cases", about.cases_of(first.agent.id))
    yield from _prompts(about, first)
    yield from _change(first)
    if len(about.parents) > 1:
        yield from _source(first)
    for member in everyone[1:]:
        place = f"agents/{member.agent.id}"
        yield from _cases(f"{place}/cases", about.cases_of(member.agent.id))
        yield from _prompts(about, member)
        yield from _change(member)
        yield from _source(member)


def _source(member: Member) -> Iterator[tuple[str, bytes]]:
    for path, data in plain(member.source).items():
        yield f"agents/{member.agent.id}/source/{path}", data


def _prompts(about: EvidenceContents, member: Member) -> Iterator[tuple[str, bytes]]:
    if prompts := prompts_of(about.cases_of(member.agent.id)):
        yield f"agents/{member.agent.id}/{PROMPTS_FILE}", prompts


def _change(member: Member) -> Iterator[tuple[str, bytes]]:
    if member.change:
        yield f"agents/{member.agent.id}/change.diff", member.change


def _cases(place: str, cases: Sequence[Case]) -> Iterator[tuple[str, bytes]]:
    for case in cases:
        folder = f"{place}/{folder_name(case)}"
        yield f"{folder}/problem.md", case.problem.encode()
        yield from ((f"{folder}/{file}", case.traces[name]) for name, file in FILES.items())


def plain(source: Snapshot) -> dict[str, bytes]:
    """Return an agent's files as plain text: links become text with their targets, and odd names are escaped.

    No two names become one, no file's name becomes a folder's, and no name is longer than ``MOST_PART`` bytes a part
    and ``MOST_PATH`` in all.
    """
    return {_printable(path): _plain(entry) for path, entry in sorted(source.items())}


def _plain(entry: Entry) -> bytes:
    return b"symbolic link to " + entry.data + b"\n" if entry.mode == LINK else entry.data


def _printable(path: str) -> str:
    written = "/".join(_shorten_name(_escape_part(part), part, MOST_PART) for part in path.split("/"))
    return _shorten_name(written, path, MOST_PATH)


def _escape_part(name: str) -> str:
    return name if name.isprintable() and not _TAKEN.search(name) else quote(os.fsencode(name))


def _shorten_name(written: str, name: str, most_bytes: int) -> str:
    """Return the escaped name if it has at most ``most_bytes``; else a short form that ends in a digest."""
    if len(written.encode()) <= most_bytes:
        return written
    start = written.replace("/", "%2F").encode()[:_KEPT].decode("utf-8", "ignore")
    return f"{start}%~{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}"


def _describe_agent(member: Member) -> bytes:
    agent = member.agent
    lines = [
        f"# Agent {agent.id}",
        "",
        f"- {_describe_descent(member)}",
        f"- made by: {agent.operator}",
        f"- what was changed and why: {agent.rationale or 'not said'}",
        f"- solved {member.own.resolved} of {member.own.n} evaluations",
    ]
    return _text(lines)


def _describe_descent(member: Member) -> str:
    parents = [str(parent) for parent in member.agent.parents]
    return f"child of {' and '.join(parents)}" if parents else "the agent that the search started from"


def _verdicts(member: Member) -> bytes:
    rows = [f"- {task}: {verdict}" for task, verdict in sorted(member.verdicts.items())]
    return _text(["# What it solved, first attempts", "", *rows])


def _index(about: EvidenceContents, wanted: Mapping[str, bytes], left: Sequence[str]) -> bytes:
    first = about.parents[0].agent.id
    alone = ", whose source is in the repository" if len(about.parents) == 1 else ""
    lines = [_HEAD, f"## Cases of agent {first}{alone}", ""]
    lines += [_line("cases", case, wanted) for case in about.cases_of(first)] or ["None yet."]
    lines += ["", "## Agents"]
    for member in (*about.parents, *about.members):
        agent, own = member.agent, member.own
        lines += ["", f"`agents/{agent.id}/`: {_describe_descent(member)}; solved {own.resolved} of {own.n}"]
        lines += [f"  by {agent.operator}: {agent.rationale}"] if agent.parents else []
        if agent.id != first:
            lines += [_line(f"agents/{agent.id}/cases", case, wanted) for case in about.cases_of(agent.id)]
    if left:
        lines += ["", "## Left out for want of room", ""]
        lines += [f"- `{path}` ({len(wanted[path])} bytes)" for path in left]
    return _text(lines)


def _text(lines: Sequence[str]) -> bytes:
    """Return the lines as UTF-8; a model's text may hold half a surrogate pair, which UTF-8 cannot encode."""
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _line(place: str, case: Case, wanted: Mapping[str, bytes]) -> str:
    folder = f"{place}/{folder_name(case)}/"
    size = sum(len(wanted[f"{folder}{file}"]) for file in ("problem.md", *FILES.values()))
    evaluation = case.evaluation
    return f"- `{folder}`: {evaluation.verdict}: {evaluation.reason} ({size} bytes)"
