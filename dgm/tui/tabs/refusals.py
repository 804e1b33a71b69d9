"""The refusals and stops that an agent met: by the gateway, by the limits of its sandboxes, by vetting."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.analysis.accounts import Purpose, RefusedRequest, account_of, refusals_of
from dgm.archive.events import ActionLost, AgentStillborn, TaskGraded
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.bounded_reading import parse_json
from dgm.domain import ActionId, AgentId, Evaluation, Verdict
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.spend import refusal_lines
from dgm.tui.bodies import Body, LineTarget, WrappedBody, heading_line, notice_body
from dgm.tui.reader import RunReader
from dgm.tui.tabs import UNREADABLE, Load
from dgm.tui.tabs.evaluations import ONE

READ = 500
"""Maximum number of evaluations whose traces are read, the last ones."""
OUT_OF_MEMORY = 137
"""Exit code of a program that a sandbox ended for exceeding its memory."""


@dataclass(frozen=True, slots=True)
class StoppedProgram:
    """A program of the agent's that was stopped."""

    action: ActionId
    task: str
    why: str


def load(reader: RunReader, agent: AgentId) -> Load:
    """Return a loader of all refusals, by the part that refused."""

    def look() -> Body:
        if reader.run is None:
            return notice_body("the run is still being read")
        return reader.ask_tree(lambda run: _build_body(run, agent))

    return look


def _build_body(run: Run, agent: AgentId) -> Body:
    work = [each for each in account_of(run, agent, whole=True).lines if each.purpose is not Purpose.MAKING]
    children = [run.tree.agents[child] for child in run.tree.children(agent)]
    made = [child.action for child in children if child.parents[0] == agent]
    refused = refusals_of(run, [*(each.action for each in work), *made])
    done = [item.event for item in run.store.graded(agent) if isinstance(item.event, TaskGraded)][-READ:]
    stopped, unread = _find_stopped(run.traces, [(event.action, event.outcome) for event in done])
    others = [each.action for each in work if each.action not in {event.action for event in done}]
    rows = [*_gateway_lines(refused), *_sandbox_lines(stopped, unread), *_fruitless_lines(run, others)]
    targets = {}
    for number, row in enumerate(rows):
        for each in stopped:
            if row == _stop_line(each):
                targets[number] = LineTarget("agent", f"{ONE}/{each.action}", agent)
    return WrappedBody(rows, targets)


def _gateway_lines(refused: Sequence[RefusedRequest]) -> Iterator[Line]:
    if refused:
        yield from refusal_lines(refused, None)
    else:
        yield heading_line("refused or left out by the gateway: ", "nothing")
    yield ()


def _sandbox_lines(stopped: Sequence[StoppedProgram], unread: str) -> Iterator[Line]:
    yield heading_line("ended by the limits of its sandbox: ", "" if stopped else "nothing")
    yield from map(_stop_line, stopped)
    if unread:
        yield make_line(Span(f"  not known of some: {one_line(unread, 300)}", Tone.WARN))
    yield ()


def _stop_line(each: StoppedProgram) -> Line:
    return make_line(Span(f"  {each.why}", Tone.WARN), f"  action {each.action}, ", one_line(each.task, 120))


def _find_stopped(
    traces: Traces, done: Sequence[tuple[ActionId, Evaluation]]
) -> tuple[Sequence[StoppedProgram], str]:
    """Return the evaluations whose program a sandbox ended, and the reason why some could not be read."""
    found: list[StoppedProgram] = []
    unread = ""
    for action, each in done:
        if "circumstances" not in each.cost.traces:
            continue
        try:
            said = parse_json(traces.get(each.cost.traces["circumstances"]))
            why = "out of time" if said.get("timed_out") else ""
            why = why or ("out of memory" if said.get("exit_code") == OUT_OF_MEMORY else "")
        except UNREADABLE as error:
            unread = unread or str(error)
            continue
        if why:
            found.append(StoppedProgram(action, each.task, why))
    return found, unread


def _fruitless_lines(run: Run, actions: Sequence[ActionId]) -> Iterator[Line]:
    """Yield lines for actions that gave neither a verdict nor a child."""
    rows: list[Line] = []
    for action in actions:
        for item in run.store.events_of_action(action):
            match item.event:
                case AgentStillborn(_, dead):
                    what, reason = f"stillborn ({one_line(dead.stage, 40)})", dead.reason
                case ActionLost(_, reason, _):
                    what = "lost"
                case TaskGraded(_, graded) if graded.verdict is Verdict.INVALID:
                    what, reason = "invalid", graded.reason
                case _:
                    continue
            why = f"  action {action}: {one_line(reason, 2_000)}"
            rows.append(make_line(Span(f"  {what}", Tone.WARN), why))
    yield heading_line("work that came to nothing: ", "" if rows else "none")
    yield from rows
