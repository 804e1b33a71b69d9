"""The evidence for improving an agent: its own cases and those of others, as files, in numbers, and in prompts.

Hidden tests and reference solutions cannot get here: traces that hold them are never read.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import quote

from dgm.archive.conversations import Prompts, Thread, Turn
from dgm.archive.snapshots import LINK
from dgm.domain import SEED, AgentId, Entry, Snapshot, Tally, Verdict
from dgm.messages import CONTEXT_LENGTH, Role
from dgm.protocols import Brief, Case, Member, ProgramEnd

EVIDENCE_FOLDER = "/run/evidence"
"""Folder of a sandbox in which evidence is mounted read-only."""
INDEX = "README.md"
TABLE_FILE, BUDGET_FILE = "archive.tsv", "budget.json"
"""Files of an overview: a row for each agent, and the limits of the search with what is left of each."""
CASE_FILES = {
    "conversation": "conversation.md",
    "patch": "patch.diff",
    "failures": "failed-tests.txt",
    "log": "agent-output.txt",
}
"""Trace → file in a case's folder; ``problem.md`` stands beside them."""
NOTES_FILE = "notes.md"
_NOTES_LINE = f"- `{NOTES_FILE}`: what people say of the agent and its ancestors; heed it"
PROMPTS_FILE = "prompts.md"
"""File with an agent's system prompts and tool definitions, one for all its cases."""
LEAST_CHARS = 200
"""Minimum characters of each part of a prompt, however many there are."""
_LEAST_CUT = 4000
"""Minimum bytes of a cut file: if less than this would fit, the file is left out."""
_FOLDED = "[system prompt and tool definitions: "
"""Beginning of the line that stands for them in a conversation."""
_LONG_SYSTEM_MESSAGE = 500
"""Characters above which a system message between the turns is shown by its size."""
_MAX_NAME, _MAX_PATH, _NAME_START = 255, 1000, 180
"""Maximum bytes of a file's name and of its path; bytes that a shortened one keeps."""
_MAX_LINES, _MAX_LINE_CHARS = 40, 160
"""Bounds on the list of evidence in a task."""
_HEAD = """# Evidence

What coding agents did on problems that may be learned from: whole conversations, patches, the names of failed tests
with a line each. `agents/N/` tells of agent N: whose child it is, what it solved, its source, what it changed against
its parent. Nothing here can be changed.
"""


def evidence_folder(
    parents: Sequence[Member],
    members: Sequence[Member],
    cases: Sequence[Case],
    folder_bytes: int,
    withheld: int = 0,
    overview: Mapping[str, bytes] = MappingProxyType({}),
) -> Snapshot:
    """Return the evidence as files: an index, the first parent's cases, and a folder for each agent.

    Nothing is summarised. If the content exceeds the bound, files are left out, starting with the last agents; the
    index names them. The first parent's cases are cut instead, where some of them fits.

    Args:
        parents: the source of a single one, or the merge of two, is in the repository and not shown again.
        members: further agents, the most important first.
        cases: evaluations of any of them; without one there is no folder.
        folder_bytes: bound on the folder, its index included unless that alone is larger.
        withheld: number of evaluations that are no evidence, because their agents cheated.
        overview: further files by path, more important than all others; with some, no case is needed.
    """
    if not cases and not overview:
        return {}
    agents = (*parents, *members)
    wanted = {**overview, **dict(_list_files(agents, cases, with_first_source=len(parents) > 1))}
    room = folder_bytes - len(_index(parents, members, cases, wanted, [*wanted], withheld))
    files: dict[str, bytes] = {}
    for path, data in wanted.items():
        if len(data) > room and room >= _LEAST_CUT and path.startswith("cases/"):
            data = cut_middle(data, room - 100)
        if len(data) <= room:
            files[path] = data
            room -= len(data)
    missing = [path for path in wanted if path not in files]
    files[INDEX] = _index(parents, members, cases, wanted, missing, withheld)
    return {path: Entry(data) for path, data in files.items()}


def manifest(evidence: Snapshot) -> bytes:
    """Return the contents of the folder as JSON: path → ``sha256`` and ``bytes``."""
    files = {
        path: {"sha256": hashlib.sha256(entry.data).hexdigest(), "bytes": len(entry.data)}
        for path, entry in sorted(evidence.items())
    }
    return json.dumps(files).encode()


def describe_evidence(brief: Brief, also: Sequence[str] = ()) -> str:
    """Return where the evidence lies, and after ``also`` a line for each case and agent, in the index's order."""
    if not brief.evidence:
        return "There is no evidence of what it did yet."
    first = brief.parents[0].agent.id
    entries = [_NOTES_LINE] if brief.notes else []
    entries += [_case_line("cases", case) for case in _cases_of(first, brief.cases)]
    for member in (*brief.parents, *brief.members):
        number = member.agent.id
        entries.append(f"- {_agent_line(member)}")
        if number != first:
            entries += [_case_line(f"agents/{number}/cases", case) for case in _cases_of(number, brief.cases)]
    lines = [*also, *map(_shorten_line, entries)]
    more = len(lines) - _MAX_LINES
    head = (
        f"The evidence lies in `{EVIDENCE_FOLDER}`; its `{INDEX}` is the index. A case is a folder with the problem,"
        " the whole conversation, the patch and what the tests said."
    )
    return "\n".join([head, *lines[:_MAX_LINES], *([f"- and {more} more"] if more > 0 else [])])


def _shorten_line(line: str) -> str:
    text = " ".join(line.encode("utf-8", "replace").decode().split())
    return text if len(text) <= _MAX_LINE_CHARS else text[: _MAX_LINE_CHARS - 3] + "..."


def _list_files(
    agents: Sequence[Member], cases: Sequence[Case], *, with_first_source: bool
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of all files but the index, the most important first."""
    for member in agents:
        agent = member.agent
        top = f"agents/{agent.id}"
        yield (
            f"{top}/README.md",
            _encode_lines(
                f"# Agent {agent.id}\n",
                f"- {_descent(member)}",
                f"- made by: {agent.operator}",
                f"- what was changed and why: {agent.rationale or 'not said'}",
                f"- solved {member.own.resolved} of {member.own.n} evaluations",
            ),
        )
        rows = (f"- {task}: {verdict}" for task, verdict in sorted(member.verdicts.items()))
        yield f"{top}/verdicts.md", _encode_lines("# What it solved, first attempts\n", *rows)
    for member in agents:
        top = f"agents/{member.agent.id}"
        agent_cases = _cases_of(member.agent.id, cases)
        is_first = member is agents[0]
        for case in agent_cases:
            folder = f"{'' if is_first else f'{top}/'}cases/{_case_name(case)}"
            yield f"{folder}/problem.md", case.problem.encode()
            yield from ((f"{folder}/{file}", case.traces[name]) for name, file in CASE_FILES.items())
        if prompts := next(filter(None, (case.traces.get("prompts") for case in agent_cases)), b""):
            yield f"{top}/{PROMPTS_FILE}", prompts
        if member.change:
            yield f"{top}/change.diff", member.change
        if with_first_source or not is_first:
            yield from ((f"{top}/source/{path}", data) for path, data in plain(member.source).items())


def _index(
    parents: Sequence[Member],
    members: Sequence[Member],
    cases: Sequence[Case],
    wanted: Mapping[str, bytes],
    missing: Sequence[str],
    withheld: int,
) -> bytes:
    def case_line(place: str, case: Case) -> str:
        folder = f"{place}/{_case_name(case)}/"
        size = sum(len(wanted[folder + file]) for file in ("problem.md", *CASE_FILES.values()))
        return f"{_case_line(place, case)} ({size} bytes)"

    first = parents[0].agent.id
    alone = ", whose source is in the repository" if len(parents) == 1 else ""
    notes = [_NOTES_LINE, ""] if NOTES_FILE in wanted else []
    tops = [
        f"`{path}` ({len(data)} bytes)"
        for path, data in wanted.items()
        if "/" not in path and path != NOTES_FILE
    ]
    overview = ["## The whole search", "", *(f"- {top}" for top in tops), ""] if tops else []
    lines = [_HEAD, *notes, *overview, f"## Cases of agent {first}{alone}", ""]
    lines += [case_line("cases", case) for case in _cases_of(first, cases)] or ["None yet."]
    lines += ["", "## Agents"]
    for member in (*parents, *members):
        agent = member.agent
        lines += ["", _agent_line(member)]
        lines += [f"  by {agent.operator}: {agent.rationale}"] if agent.parents else []
        lines += [f"  promised: {line}" for line in _describe_predictions(member)]
        if agent.id != first:
            lines += [case_line(f"agents/{agent.id}/cases", case) for case in _cases_of(agent.id, cases)]
    if withheld:
        lines += ["", f"Evaluations left out because an agent cheated in them: {withheld}."]
    if missing:
        lines += ["", "## Left out for want of room", ""]
        lines += [f"- `{path}` ({len(wanted[path])} bytes)" for path in missing]
    return _encode_lines(*lines)


def _describe_predictions(member: Member) -> Iterator[str]:
    """Yield what the edit that made an agent promised, and what became of it."""
    words = {Verdict.RESOLVED: "kept", Verdict.UNRESOLVED: "broken"}
    for prediction in member.agent.predictions:
        state = words.get(member.verdicts.get(prediction.task, Verdict.INVALID), "open")
        yield f"{state}: that it solves {prediction.task}: {prediction.reason or 'not said why'}"


def _encode_lines(*lines: str) -> bytes:
    """Return the lines as UTF-8; a model's text may hold half a surrogate pair, which UTF-8 cannot encode."""
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _cases_of(agent: AgentId, cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.evaluation.agent == agent]


def _case_name(case: Case) -> str:
    """Return a name that is a single part of a path, whatever the task's name contains."""
    return f"{quote(case.evaluation.task, safe='')}-{case.evaluation.attempt}"


def _case_line(place: str, case: Case) -> str:
    return f"- `{place}/{_case_name(case)}/`: {case.evaluation.verdict}: {case.evaluation.reason}"


def _agent_line(member: Member) -> str:
    return f"`agents/{member.agent.id}/`: {_descent(member)}; solved {member.own.resolved} of {member.own.n}"


def _descent(member: Member) -> str:
    parents = " and ".join(map(str, member.agent.parents))
    root = "the agent" if member.agent.id == SEED else "another agent"
    return f"child of {parents}" if parents else f"{root} that the search started from"


def plain(source: Snapshot) -> dict[str, bytes]:
    """Return an agent's files as plain text: links become text with their targets, and odd names are escaped.

    No two names become one, no file's name becomes a folder's, and no name is too long for a file system.
    """
    return {
        _printable(path): b"symbolic link to " + entry.data + b"\n" if entry.mode == LINK else entry.data
        for path, entry in sorted(source.items())
    }


def _printable(path: str) -> str:
    parts = [
        _shorten_name(
            part if part.isprintable() and "%" not in part else quote(os.fsencode(part)), part, _MAX_NAME
        )
        for part in path.split("/")
    ]
    return _shorten_name("/".join(parts), path, _MAX_PATH)


def _shorten_name(escaped: str, name: str, max_bytes: int) -> str:
    if len(escaped.encode()) <= max_bytes:
        return escaped
    start = escaped.replace("/", "%2F").encode()[:_NAME_START].decode("utf-8", "ignore")
    return f"{start}%~{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}"


def program_end_of(
    exit_code: int, timed_out: bool, log: bytes, threads: Sequence[Thread], refused: Collection[str] = ()
) -> ProgramEnd:
    """Return the signs that any scaffold gives, whatever its design; ``refused`` is as in ``Work``."""
    turns = (turn.message for thread in threads for turn in thread.turns)
    return ProgramEnd(
        exit_code=exit_code,
        timed_out=timed_out,
        truncated=any(message.role is Role.TOOL and "truncated" in message.text for message in turns),
        crashed=exit_code != 0 and b"Traceback (most recent call last)" in log,
        context=CONTEXT_LENGTH in refused,
    )


def count_problems(tally: Tally, cases: Sequence[Case]) -> dict[str, int]:
    """Return counts of the problems in unresolved cases; ``tally`` is over all the agent's evaluations so far."""
    failed = [case for case in cases if case.evaluation.verdict is Verdict.UNRESOLVED]
    return {
        "resolved": tally.resolved,
        "evaluations": tally.n,
        "failures": len(failed),
        "step_limit": sum(case.run.exit_code != 0 and not case.run.crashed for case in failed),
        "truncated": sum(case.run.truncated for case in failed),
        "wrong": sum(case.run.exit_code == 0 and bool(case.traces["patch"]) for case in failed),
        "crashed": sum(case.run.crashed for case in failed),
        "empty": sum(not case.traces["patch"] for case in failed),
        "context": sum(case.run.context for case in failed),
    }


def conversation_text(threads: Sequence[Thread]) -> str:
    """Return conversations as readable text: a heading for each turn, and tool calls as the model wrote them.

    System prompts and tool definitions are one line with their size; ``prompts_text`` has them.
    """
    parts = []
    for number, thread in enumerate(threads, 1):
        if len(threads) > 1:
            parts.append(_thread_title(number, threads))
        parts += [_folded_line(prompts) for prompts in thread.prompts if prompts.text()]
        for at, segment in enumerate(thread.segments):
            if at:
                parts.append(f"[new context: {segment.left_out} earlier messages left out]\n")
            parts += [_turn_text(turn) for turn in segment.turns]
    return "\n".join(parts)


def prompts_text(threads: Sequence[Thread]) -> str:
    """Return all system prompts and tool definitions, each once, and long system messages between the turns."""
    parts = []
    for number, thread in enumerate(threads, 1):
        title = _thread_title(number, threads) if len(threads) > 1 else ""
        texts = [prompts.text() for prompts in thread.prompts]
        texts += [turn.message.text for turn in thread.turns if _is_folded(turn)]
        parts += [f"{title}\n{text}\n" for text in dict.fromkeys(texts) if text]
    return "\n".join(parts)


def begin_with_actions(text: bytes) -> bytes:
    """Return a conversation of ``conversation_text`` from its first answer on, after a line for what stands before.

    Evidence has the task and the system prompt in files of their own.
    """
    first = text.find(b"## assistant\n")
    if first <= 0:
        return text
    opening = text[:first].decode("utf-8", "replace")
    folds = [line.strip("[]") for line in opening.splitlines() if line.startswith(_FOLDED)]
    also = f" ({'; '.join(folds)}: see `{PROMPTS_FILE}`)" if folds else ""
    return f"[opening with the task: {first:,} bytes, see `problem.md`{also}]\n\n".encode() + text[first:]


def _folded_line(prompts: Prompts) -> str:
    return f"{_FOLDED}{len(prompts.text()):,} characters, {len(prompts.tools)} tools]\n"


def _thread_title(number: int, threads: Sequence[Thread]) -> str:
    thread = threads[number - 1]
    begun = next((turn.call for turn in thread.turns), 0)
    calls = f"{thread.calls} model call{'s' if thread.calls != 1 else ''}"
    return f"# Conversation {number} of {len(threads)}: {calls}, from call {begun}\n"


def _is_folded(turn: Turn) -> bool:
    return turn.message.role is Role.SYSTEM and len(turn.message.text) > _LONG_SYSTEM_MESSAGE


def _turn_text(turn: Turn) -> str:
    message = turn.message
    if _is_folded(turn):
        return f"## {message.role}\n\n[{len(message.text):,} characters]\n"
    calls = "".join(f"\n\n`{call.name}` {call.arguments}" for call in message.calls)
    return f"## {message.role}\n\n{message.text}{calls}\n"


def cut_middle(data: bytes, limit: int) -> bytes:
    """Return about ``limit`` bytes at most: the first and last half, with a line that gives the missing bytes."""
    if len(data) <= limit:
        return data
    half = limit // 2
    return data[:half] + b"\n[... %d bytes left out ...]\n" % (len(data) - 2 * half) + data[-half:]


def fit_to_budget(parts: Sequence[tuple[str, bytes]], chars: int) -> str:
    """Return the parts, title and content, under headings, with about ``chars`` characters of content in total.

    A part shorter than its share is shown complete and leaves the rest to the others. A longer one is cut in its
    middle. Each gets ``LEAST_CHARS`` at least.
    """
    shares: dict[int, int] = {}
    room = chars
    for done, at in enumerate(sorted(range(len(parts)), key=lambda n: len(parts[n][1]))):
        shares[at] = max(LEAST_CHARS, room // (len(parts) - done))
        room -= min(len(parts[at][1]), shares[at])
    texts = [
        f"=== {title} ===\n{cut_middle(data, shares[n]).decode('utf-8', 'replace').rstrip()}\n"
        for n, (title, data) in enumerate(parts)
    ]
    return "\n".join([*texts, "=== end ==="])
