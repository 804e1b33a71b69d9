"""The flat evidence folder: an index, and one folder for each case."""

from collections.abc import Sequence
from urllib.parse import quote

from dgm.domain import Entry, Snapshot
from dgm.meta.evidence.cases import PROMPTS_FILE, cut_middle
from dgm.protocols import Case

FILES = {
    "conversation": "conversation.md",
    "patch": "patch.diff",
    "failures": "failed-tests.txt",
    "log": "agent-output.txt",
}
TRANSCRIPT_BYTES = 60_000
"""Kept of each transcript, from both ends."""


def folder(cases: Sequence[Case]) -> Snapshot:
    """Return the evidence as files: an index, and one folder for each case, named by its task."""
    files: dict[str, Entry] = {}
    index = ["# Evidence", "", "One folder a problem, as far as this agent has worked on it.", ""]
    for case in cases:
        name = folder_name(case)
        index.append(f"- `{name}/`: {case.evaluation.verdict}: {case.evaluation.reason}")
        files |= {f"{name}/{file}": Entry(data) for file, data in _case(case).items()}
    if prompts := prompts_of(cases):
        files[PROMPTS_FILE] = Entry(cut_middle(prompts, TRANSCRIPT_BYTES))
    files["README.md"] = Entry(("\n".join(index) + "\n").encode())
    return files


def folder_name(case: Case) -> str:
    """Return the name of a case's folder; always a single path part, whatever the task's name contains."""
    return f"{quote(case.evaluation.task, safe='')}-{case.evaluation.attempt}"


def prompts_of(cases: Sequence[Case]) -> bytes:
    """Return the system prompts and tool definitions of the first case that has any; empty if none has."""
    return next(filter(None, (case.traces.get("prompts") for case in cases)), b"")


def _case(case: Case) -> dict[str, bytes]:
    shown = {
        FILES[name]: cut_middle(data, TRANSCRIPT_BYTES) for name, data in case.traces.items() if name in FILES
    }
    return {"problem.md": case.problem.encode(), **shown}
