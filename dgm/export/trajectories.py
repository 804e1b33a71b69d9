"""Trajectories in a folder: a file for each evaluation, and an index.

Where the agent wrote one itself, the file is that one, in its own form; else it is made of the recorded model calls
(``atif``). Keys and personal names are taken out, as in a pack.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.events import ModelCalled, TaskGraded
from dgm.archive.identity import identity_of
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.bounded_reading import refuse_odd_values
from dgm.domain import ActionId, Agent, Evaluation
from dgm.errors import UserError
from dgm.export.atif import VERSION, build_document
from dgm.export.fresh import new_folder
from dgm.export.tables import read_events
from dgm.meta.trajectories import TRACE, form_of
from dgm.publish.packing import make_scrubber
from dgm.publish.scrubbing import LocalIdentity, Scrubber

INDEX = "index.jsonl"
TASK_CHARS = 80
"""Characters of a task's id in the name of a file."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_UNSEEN = re.compile(r"[^ -~\n]")


@dataclass(frozen=True, slots=True)
class WrittenTrajectories:
    """Numbers of evaluations whose trajectories were written."""

    own: int
    """Those that the agent itself had written."""
    recorded: int
    """Those made of the recorded model calls."""
    missing: int
    """Those of which there is neither; the index has a line for each."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file of an evaluation; without data it is only a line of the index."""

    writer: str
    """``agent``, ``dgm``, or empty."""
    form: str
    data: bytes = b""
    is_lines: bool = False
    tried: int | None = None
    """Number of the try that it tells of, from 1; None: it tells of all."""


def write_trajectories(
    run: Run, agent: Agent | None, target: Path, surroundings: LocalIdentity
) -> WrittenTrajectories:
    """Write the trajectories of all evaluations of a run, or of one agent's, into a new folder.

    Args:
        run: the run.
        agent: whose evaluations; None: those of all agents.
        target: the new folder.
        surroundings: the facts about this machine that must not be in the files.

    Raises:
        UserError: something is there already, it cannot be written, or no evaluation has a verdict.
        ArchiveCorrupt: a trace is missing or damaged.
    """
    with new_folder(target) as draft:
        done = _find_evaluations(run, agent)
        if not done:
            whose = "the run" if agent is None else f"agent {agent.id}"
            raise UserError(f"{target}: not written: no evaluation of {whose} has a verdict yet")
        scrubber = make_scrubber(run.folder, surroundings)
        writers: dict[ActionId, str] = {}
        with (draft / INDEX).open("wb") as index:
            for action, evaluation in done:
                for file in _files_of(run, action, evaluation):
                    writers[action] = file.writer
                    name = _name_of(action, evaluation, file, scrubber) if file.data else None
                    if name:
                        (draft / name).write_bytes(scrubber.clean(file.data))
                    row = _index_row(run, action, evaluation, file)
                    index.write(scrubber.clean(_dump({"file": name, **row}) + b"\n"))
    found = list(writers.values())
    return WrittenTrajectories(found.count("agent"), found.count("dgm"), found.count(""))


def _find_evaluations(run: Run, agent: Agent | None) -> Sequence[tuple[ActionId, Evaluation]]:
    """Return the newest verdict of each action, sorted by agent and task; withdrawn verdicts are left out."""
    gone = run.store.withdrawn(run.tree.seq)
    done = {
        event.action: event.outcome
        for seq, _, event in read_events(run, "task_graded")
        if isinstance(event, TaskGraded) and seq not in gone
    }
    wanted = [item for item in done.items() if agent is None or item[1].agent == agent.id]
    return sorted(wanted, key=lambda item: (item[1].agent, item[1].task, item[1].attempt, item[0]))


def _files_of(run: Run, action: ActionId, done: Evaluation) -> Iterator[_File]:
    """Yield the agent's own files, that of the last try last; else one of the recorded calls."""
    kept = done.cost.traces
    tries = [int(name[len(TRACE) + 1 :]) for name in kept if re.fullmatch(rf"{TRACE}-[0-9]{{1,3}}", name)]
    for number in sorted(tries):
        yield _own_file(run.traces.get(kept[f"{TRACE}-{number}"]), number)
    if TRACE in kept:
        yield _own_file(run.traces.get(kept[TRACE]), _count_tries(done))
        return
    calls = [
        (recorded.at, recorded.event)
        for recorded in run.store.events_of_action(action)
        if isinstance(recorded.event, ModelCalled) and recorded.seq <= run.tree.seq
    ]
    if not calls:
        yield _File("", "")
        return
    calls.sort(key=lambda item: item[1].number)
    reader = CallReader(run.store, run.traces)
    with refuse_odd_values(f"{run.folder}: model calls of action {action}"):
        document = build_document(reader, calls, _head_of(run, action, done, calls[-1][1].model))
    yield _File("dgm", VERSION, _dump(document, indent=1) + b"\n")


def _own_file(data: bytes, tried: int) -> _File:
    form = form_of(data)
    return _File("agent", form.name, data, form.is_lines, tried)


def _head_of(run: Run, action: ActionId, done: Evaluation, model: str) -> Mapping[str, Any]:
    whose = identity_of(run)
    return {
        "session_id": f"{whose.run}/action-{action}",
        "agent": {
            "name": f"{whose.run}/agent-{done.agent}",
            "version": run.tree.agents[done.agent].commit,
            "model_name": model,
        },
        # Not the reason: it may name hidden tests, and agents may be trained on this.
        "extra": {**whose.record(), **_facts_of(action, done)},
    }


def _index_row(run: Run, action: ActionId, done: Evaluation, file: _File) -> Mapping[str, Any]:
    spent = run.tree.spend_of(action)
    return {
        **identity_of(run).record(),
        **_facts_of(action, done),
        "try": file.tried,
        "written_by": file.writer,
        "form": file.form,
        "calls": spent.calls,
        "usd": spent.usd,
        "seconds": done.cost.seconds,
    }


def _facts_of(action: ActionId, done: Evaluation) -> dict[str, Any]:
    return {
        "agent": done.agent,
        "task": done.task,
        "attempt": done.attempt,
        "action": action,
        "verdict": done.verdict.value,
        "score": done.score,
    }


def _name_of(action: ActionId, done: Evaluation, file: _File, scrubber: Scrubber) -> str:
    named = scrubber.clean(done.task.encode("utf-8", "replace")).decode()
    task = _ODD.sub("-", named)[:TASK_CHARS].strip("-.") or "task"
    tried = f".try-{file.tried}" if file.tried and _count_tries(done) > 1 else ""
    return f"agent-{done.agent}.{task}.action-{action}{tried}.{'jsonl' if file.is_lines else 'json'}"


def _count_tries(done: Evaluation) -> int:
    return 1 + sum(bool(re.fullmatch(r"log-[0-9]{1,3}", name)) for name in done.cost.traces)


def _dump(value: object, indent: int | None = None) -> bytes:
    """Return JSON with invisible characters spelled out, and a question mark for half a character."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    whole = text.encode("utf-8", "replace").decode()
    return _UNSEEN.sub(_spell, whole).encode()


def _spell(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]
