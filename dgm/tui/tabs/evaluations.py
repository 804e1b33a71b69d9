"""The results of an agent on its tasks: a list, and everything kept of one evaluation."""

from collections.abc import Iterator, Mapping, Sequence

from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.traces import Traces
from dgm.bounded_reading import parse_json
from dgm.domain import ActionId, AgentId, Digest, Evaluation, Usage, Verdict
from dgm.errors import DgmError
from dgm.meta.trajectories import TRACE
from dgm.show.diffs import Patch
from dgm.show.evaluations import evaluation_line
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, fact_line, make_line
from dgm.show.words import VERDICT_MARKS, VERDICT_TONES, count_text, usage_text
from dgm.tui.bodies import (
    LONGEST,
    Body,
    DiffBody,
    LineBody,
    LineTarget,
    RawBody,
    StackedBody,
    UnreadableBody,
    WrappedBody,
    heading_line,
    paragraph_lines,
)
from dgm.tui.reader import RunReader
from dgm.tui.tabs import UNREADABLE, Load

ONE = "evaluation"
"""Prefix of the part that shows one evaluation: ``evaluation/ACTION``."""
_TITLES = {
    "patch": "what the agent changed",
    "failures": "failed tests",
    "tests": "output of the hidden tests",
    "log": "output of the agent's program",
    "conversation": "its conversations with the model",
    "prompts": "system prompts and tool definitions",
    "circumstances": "how it ended",
}


def load(reader: RunReader, agent: AgentId) -> Load:
    """Return a loader of the list: an evaluation a line, by task and attempt."""
    tree = reader.run.tree if reader.run else None

    def look() -> Body:
        events = reader.ask(lambda store: store.graded(agent))
        done = sorted(_find_evaluations(events), key=lambda item: (item[1].task, item[1].attempt))
        if not done:
            return LineBody([make_line("  no evaluation has a verdict yet")])
        usage = {
            action: tree.spend_of(action) if tree is not None else each.cost.usage for action, each in done
        }
        rows = [evaluation_line(each, usage[action], LONGEST) for action, each in done]
        total = sum(usage.values(), Usage())
        resolved = sum(each.verdict is Verdict.RESOLVED for _, each in done)
        seconds = sum(each.cost.seconds for _, each in done)
        said = f": {resolved} resolved, {seconds:,.1f} s, {usage_text(total)}"
        targets = {
            n: LineTarget("agent", f"{ONE}/{action}", agent, each.task)
            for n, (action, each) in enumerate(done, 1)
        }
        return LineBody([heading_line(count_text(len(done), "evaluation"), said), *rows], targets)

    return look


def load_one(reader: RunReader, action: ActionId) -> Load:
    """Return a loader of one evaluation: verdict, patch, failed tests, logs, the conversation."""
    tree = reader.run.tree if reader.run else None
    traces = Traces(reader.folder / "traces")

    def look() -> Body:
        events = reader.ask(lambda store: store.events_of_action(action))
        done = [each for _, each in _find_evaluations(events)]
        if not done:
            return UnreadableBody(f"evaluation {action}", "it has no verdict yet")
        usage = tree.spend_of(action) if tree is not None else done[-1].cost.usage
        return evaluation_body(traces, action, done[-1], usage)

    return look


def evaluation_body(traces: Traces, action: ActionId, done: Evaluation, usage: Usage) -> Body:
    """Return everything kept of one evaluation, for browser and command line; unreadable parts give the reason."""
    return StackedBody(list(_build_parts(traces, action, done, usage)))


def _find_evaluations(events: Sequence[Recorded]) -> Sequence[tuple[ActionId, Evaluation]]:
    gone = {item.event.graded for item in events if isinstance(item.event, VerdictWithdrawn)}
    return [
        (item.event.action, item.event.outcome)
        for item in events
        if isinstance(item.event, TaskGraded) and item.seq not in gone
    ]


def _build_parts(traces: Traces, action: ActionId, done: Evaluation, usage: Usage) -> Iterator[Body]:
    yield WrappedBody(list(_head_lines(action, done, usage)))
    kept = done.cost.traces
    for name in _order_names(kept):
        kind, _, tried = name.partition("-")
        if kind == TRACE:
            # Its words are those of the conversation; exports write the file itself.
            continue
        is_own = kind == "conversation" and name.replace(kind, TRACE, 1) in kept
        title = "its own trajectory" if is_own else _TITLES.get(kind, one_line(kind, 60))
        yield LineBody([(), heading_line(title + (f", try {one_line(tried, 20)}" if tried else ""))])
        yield _trace_body(traces, name, kept[name])
    if not done.cost.traces:
        yield LineBody([(), make_line("  nothing else is kept of it")])


def _head_lines(action: ActionId, done: Evaluation, usage: Usage) -> Iterator[Line]:
    again = f", attempt {done.attempt + 1}" if done.attempt else ""
    yield fact_line("agent", Span(str(done.agent), Tone.STRONG), f"  (action {action})")
    yield fact_line("task", Span(one_line(done.task, 300), Tone.STRONG), again)
    yield fact_line(
        "verdict", Span(f"{VERDICT_MARKS[done.verdict]} {done.verdict}", VERDICT_TONES[done.verdict])
    )
    yield fact_line("because", one_line(done.reason, 2_000))
    yield fact_line("took", f"{done.cost.seconds:.1f} s, {usage_text(usage)}")


def _order_names(names: Mapping[str, Digest]) -> Sequence[str]:
    """Return the names by try, the last try first, and in it the most important parts first."""
    order = list(_TITLES)

    def place(name: str) -> tuple[str, int, str]:
        kind, _, tried = name.partition("-")
        return tried, order.index(kind) if kind in order else len(order), kind

    return sorted(names, key=place)


def _trace_body(traces: Traces, name: str, digest: Digest) -> Body:
    try:
        data = traces.get(digest)
    except DgmError as error:
        return UnreadableBody(f"trace {name}", str(error))
    if not data.strip():
        return LineBody([make_line(Span("  empty", Tone.DIM))])
    kind = name.partition("-")[0]
    if kind == "patch":
        return DiffBody(Patch(data))
    if kind == "circumstances":
        return _circumstances_body(data)
    if kind in ("tests", "log"):
        return RawBody(data)
    return WrappedBody(paragraph_lines(data.decode("utf-8", "replace")))


def _circumstances_body(data: bytes) -> Body:
    try:
        said = parse_json(data)
        return LineBody(
            [
                fact_line(one_line(str(name), 30), one_line(str(value), 200), width=14)
                for name, value in said.items()
            ]
        )
    except UNREADABLE:
        return RawBody(data)
