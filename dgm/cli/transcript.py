"""``dgm show RUN AGENT --transcript TASK``: show the whole record of one evaluation, as ``dgm browse`` does."""

import difflib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.cli.output import emit_json
from dgm.domain import ActionId, Agent, Evaluation
from dgm.errors import DgmError, UserError
from dgm.show.safe import one_line
from dgm.show.spans import Line
from dgm.show.terminal import write_lines
from dgm.show.transcripts import read_exchanges, turns_record

if TYPE_CHECKING:
    from dgm.tui.bodies import Body

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


def show_transcript(run: Run, action: ActionId, evaluation: Evaluation, *, as_json: bool) -> None:
    """Print one evaluation: in the pager if a terminal is too small for it, as plain text in a pipe.

    Raises:
        DgmError: with ``as_json``, a model call cannot be read.
    """
    if as_json:
        emit_json(transcript_record(run, action, evaluation))
        return
    from dgm.tui.tabs.evaluations import evaluation_body

    body = evaluation_body(run.traces, action, evaluation, run.tree.spend_of(action))
    if sys.stdout.isatty():
        _show_on_terminal(body)
        return
    for text in body.text():
        sys.stdout.write(text + "\n")


def transcript_record(run: Run, action: ActionId, evaluation: Evaluation) -> dict[str, Any]:
    """Return one evaluation for programs: its facts, the other attempts at its task, and the turns."""
    same = [
        {"attempt": each.attempt + 1, "action": other, "verdict": each.verdict.value}
        for other, each in evaluations_of(run, evaluation.agent).items()
        if each.task == evaluation.task
    ]
    turns: list[dict[str, Any]] = []
    for exchange in read_exchanges(run.traces, run.store.calls(action)):
        turns += turns_record(exchange)
    return {
        "run": run.name,
        "agent": evaluation.agent,
        "task": evaluation.task,
        "attempt": evaluation.attempt + 1,
        "action": action,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "attempts": same,
        "turns": turns,
    }


def _show_on_terminal(body: "Body") -> None:
    size = shutil.get_terminal_size()
    body.reflow(size.columns)
    if len(body) >= size.lines and os.environ.get("TERM") != "dumb":
        from dgm.tui.pager import show_in_pager

        try:
            show_in_pager("\n".join(body.text()))
        except DgmError as error:
            sys.stderr.write(f"{error}; the text follows without a pager\n")
        else:
            return
    write_lines(_body_lines(body, size.columns))


def _body_lines(body: "Body", width: int) -> Sequence[Line]:
    return [body.line(number, width) for number in range(len(body))]
