"""One evaluation of an agent, found by its task, as a document with all turns of its model."""

import difflib
from collections.abc import Mapping
from typing import Any

from dgm.archive.history import evaluations_of
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.domain import ActionId, Agent, Evaluation
from dgm.errors import UserError
from dgm.show.safe import one_line
from dgm.show.transcripts import read_transcript, threads_record

_NAMED = 5
"""Maximum number of tasks that a message names."""


def find_attempt(run: Run, agent: Agent, task: str, attempt: int | None) -> tuple[ActionId, Evaluation]:
    """Return an agent's evaluation on a task with its action; the newest one if ``attempt`` is None.

    Args:
        run: the run.
        agent: the agent.
        task: the task's name.
        attempt: from 1, as lists count them.

    Raises:
        UserError: the agent has no verdict on such a task, or no such attempt at it.
    """
    done = evaluations_of(run, agent.id)
    found = {each.attempt + 1: (action, each) for action, each in done.items() if each.task == task}
    if not found:
        raise UserError(_no_verdict_text(run, agent, task, done))
    if attempt is None:
        return found[max(found)]
    if attempt not in found:
        there = " or ".join(map(str, sorted(found)))
        raise UserError(
            f"--attempt {attempt}: agent {agent.id} has no such attempt at '{one_line(task, 120)}'; give {there}"
        )
    return found[attempt]


def _no_verdict_text(run: Run, agent: Agent, task: str, done: Mapping[ActionId, Evaluation]) -> str:
    tried = list(dict.fromkeys(str(each.task) for each in done.values()))
    said = f"--transcript '{one_line(task, 120)}': agent {agent.id} has no verdict on such a task"
    if near := difflib.get_close_matches(task, tried, 1, 0.5):
        return f"{said}; did you mean '{one_line(near[0], 120)}'?"
    if task in run.tree.tasks:
        others = [each.id for each in run.tree.agents if task in run.tree.verdicts(each.id)]
        who = (
            f"agents that tried it: {', '.join(map(str, others[:_NAMED]))}" if others else "no agent tried it"
        )
        return f"{said} yet; {who}"
    named = ", ".join(one_line(each, 60) for each in tried[:_NAMED])
    more = f" and {len(tried) - _NAMED} more" if len(tried) > _NAMED else ""
    return f"{said}; it has verdicts on {named}{more}" if tried else f"{said}, nor on any other"


def transcript_record(run: Run, action: ActionId, evaluation: Evaluation) -> dict[str, Any]:
    """Return one evaluation for programs: its facts, the other attempts at its task, and the turns."""
    same = [
        {"attempt": each.attempt + 1, "action": other, "verdict": each.verdict.value}
        for other, each in evaluations_of(run, evaluation.agent).items()
        if each.task == evaluation.task
    ]
    transcript = read_transcript(CallReader(run.store, run.traces), run.store.calls(action))
    if transcript.fault is not None:
        raise transcript.fault
    return {
        "run": run.name,
        "agent": evaluation.agent,
        "task": evaluation.task,
        "attempt": evaluation.attempt + 1,
        "action": action,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "attempts": same,
        **threads_record(transcript),
    }
