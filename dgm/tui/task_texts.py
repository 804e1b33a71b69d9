"""Tasks of a run: the list of all with how often each was solved, and the statement of one."""

from collections.abc import Mapping, Sequence

from dgm.analysis.lookups import TaskVerdict, find_verdicts, tally_tasks
from dgm.analysis.outline import has_indices
from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.archive.traces import Traces
from dgm.archive.tree import Tree
from dgm.domain import ActionId, Tally, TaskId, Verdict
from dgm.errors import DgmError
from dgm.evaluation.exam import OPERATOR
from dgm.show.safe import cell_width, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BAR, bar_line, count_text, interval_text, tally_text
from dgm.tui.bodies import (
    Body,
    LineBody,
    LineTarget,
    PairedBody,
    StackedBody,
    UnreadableBody,
    WrappedBody,
    heading_line,
    notice_body,
    paragraph_lines,
)
from dgm.tui.reader import RunReader
from dgm.tui.tabs import Load, load_or_explain
from dgm.tui.tabs.evaluations import load_one

WIDEST = 60
"""Maximum cells of the names of tasks."""
_USER = "## user\n\n"
_NEXT = "\n\n## "


def list_offered_tasks(tree: Tree) -> Sequence[TaskId]:
    """Return the tasks that are shown though nobody has tried them; an examination hides its unused tasks."""
    examination = bool(tree.agents) and tree.agents[0].operator == OPERATOR
    return () if examination else tree.tasks


def load_tallies(reader: RunReader) -> tuple[int, Mapping[TaskId, Tally]]:
    """Return the last event that is counted, and the tally of each task that has a verdict.

    Every attempt counts. For a thread beside.
    """
    until = reader.until

    def count(store: EventStore) -> Mapping[TaskId, Tally] | None:
        return tally_tasks(store, until) if has_indices(store) else None

    found = reader.ask(count)
    return reader.ask_tree(_count_first_attempts) if found is None else (until, found)


def _count_first_attempts(run: Run) -> tuple[int, Mapping[TaskId, Tally]]:
    """Return the same from a log without indices, where only first attempts are counted."""
    found: dict[TaskId, Tally] = {}
    for agent in run.tree.agents:
        for task, verdict in run.tree.verdicts(agent.id).items():
            if verdict in (Verdict.RESOLVED, Verdict.UNRESOLVED):
                good = verdict is Verdict.RESOLVED
                found[task] = found.get(task, Tally()) + Tally(int(good), int(not good))
    return run.tree.seq, found


def task_list_body(reader: RunReader, tallies: Mapping[TaskId, Tally]) -> Body:
    """Return the list, a task a line, in the order of the suite; other tasks stand behind."""
    known = list_offered_tasks(reader.run.tree) if reader.run else ()
    tasks = list(dict.fromkeys((*known, *sorted(tallies))))
    if not tasks:
        return notice_body("no task was tried yet", Tone.DIM)
    solved = sum(tallies.get(task, Tally()).resolved > 0 for task in tasks)
    width = min(WIDEST, max(cell_width(one_line(task, WIDEST)) for task in tasks))
    rows = [_task_line(task, tallies.get(task, Tally()), width) for task in tasks]
    targets = {number: LineTarget("task", task=task) for number, task in enumerate(tasks, 1)}
    title = heading_line(
        count_text(len(tasks), "task"), f", {solved:,} of them resolved by somebody: resolved / tries"
    )
    return LineBody([title, *rows], targets)


def _task_line(task: TaskId, tally: Tally, width: int) -> Line:
    return make_line(
        "  ",
        Span(fit(one_line(task, width), width), Tone.STRONG),
        "  ",
        *(bar_line(tally.rate) if tally.n else (" " * BAR,)),
        f"  {tally_text(tally):<12} ",
        Span(interval_text(tally), Tone.DIM),
    )


def load_tries(reader: RunReader, task: TaskId) -> Sequence[TaskVerdict]:
    """Return every verdict on a task. For a thread beside."""
    return reader.ask(lambda store: find_verdicts(store, task, reader.until))


def statement_body(reader: RunReader, task: TaskId, tries: Sequence[TaskVerdict]) -> Body:
    """Return the statement of a task: from the benchmark, else from an agent's conversation. For a thread beside."""
    if not tries and (reader.run is None or task not in list_offered_tasks(reader.run.tree)):
        return UnreadableBody(f"task {task}", "there is no such task in this run, or nobody has tried it yet")
    said = _read_statement(reader, task)
    where = "from the benchmark"
    if said is None:
        said, where = (
            _find_in_conversations(reader, tries),
            "as an agent was told it; the benchmark is not here, or has changed",
        )
    title = heading_line(one_line(task, 200), Span(f"  {where}" if said else "", Tone.DIM))
    if said is None:
        why = "the benchmark does not lie on this machine, or has changed, and no conversation is kept that tells it"
        return StackedBody([LineBody([title]), UnreadableBody("the statement", why)])
    return WrappedBody([title, (), *paragraph_lines(said)])


def _read_statement(reader: RunReader, task: TaskId) -> str | None:
    if reader.run is None:
        return None
    # This module knows all parts of a run, and takes long to import.
    from dgm.assemble import read_statement

    try:
        return read_statement(reader.run, task)
    except (DgmError, ValueError, LookupError, TypeError):
        return None


def _find_in_conversations(reader: RunReader, tries: Sequence[TaskVerdict]) -> str | None:
    traces = Traces(reader.folder / "traces")
    for one in tries[:3]:
        for item in reader.ask(lambda store, one=one: store.events_of_action(one.action)):  # type: ignore[misc]
            if not isinstance(item.event, TaskGraded):
                continue
            digest = item.event.outcome.cost.traces.get("conversation")
            try:
                text = traces.get(digest).decode("utf-8", "replace") if digest else ""
            except DgmError:
                continue
            begin = text.find(_USER)
            if begin >= 0:
                return text[begin + len(_USER) :].split(_NEXT, 1)[0]
    return None


def load_attempts(reader: RunReader, agent: str, actions: Sequence[ActionId]) -> Load:
    """Return a loader of one agent's attempts at a task, one below the other."""
    loads = [load_one(reader, action) for action in actions]

    def look() -> Body:
        if not loads:
            return LineBody([make_line(Span(f"  agent {agent} has no verdict on this task", Tone.DIM))])
        return StackedBody([load_or_explain("the evaluation", load) for load in loads])

    return look


def load_beside(reader: RunReader, agents: Sequence[str], actions: Sequence[Sequence[ActionId]]) -> Load:
    """Return a loader of two agents' attempts at a task beside each other."""
    one, other = (load_attempts(reader, *each) for each in zip(agents, actions, strict=True))
    return lambda: PairedBody(one(), other())
