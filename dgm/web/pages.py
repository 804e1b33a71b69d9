"""The pages and data of a run: where each one is, and the function that loads it in the run's thread.

A page's ``load`` returns the values of its template; one of data returns what is sent. Both are kept by address and
query, so viewers share what was computed once.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dgm.analysis.accounts import Accounts, read_usage
from dgm.analysis.agents import find_agent, trace_lineage
from dgm.archive.events import ActionStarted, AgentBorn, TaskGraded
from dgm.archive.run import Run
from dgm.domain import ActionId, Agent, AgentId, Cost, Evaluate, TaskId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.render.html.figures import draw_operators, draw_progress
from dgm.render.html.page import excerpt_diff, render_page
from dgm.render.report_text import operator_gain, operator_remarks
from dgm.render.safe import one_line
from dgm.render.text import agent_facts, finding_text, run_facts
from dgm.stats import JUDGED, lower_bound
from dgm.views.agents import (
    AgentRow,
    AgentView,
    DiffView,
    WaitingChildView,
    agent_states,
    decode,
    read_waiting_patch,
)
from dgm.views.conduct import FindingView
from dgm.views.curve import compute_curve
from dgm.views.events import EventView, Level
from dgm.views.report import ReportView, read_operators, read_spend
from dgm.views.tasks import AgentTaskView, TaskView, TranscriptView
from dgm.views.values import SpendView, TallyView
from dgm.web import matrix, tree
from dgm.web.markup import address_name
from dgm.web.shared import RunSource, parse_number

ROWS = 100
"""Rows of a page of agents, events or messages."""
DIFF_CHARS = 400_000
"""Maximum characters of a diff on a page."""
Values = Mapping[str, str]
"""Values from the address and the query of a request; both are untrusted text."""


class Page(NamedTuple):
    """A page of a run."""

    path: str
    """Below the run's address, in the form of starlette: ``agents/{agent}``."""
    template: str
    load: Callable[[RunSource, Values], Mapping[str, Any]]
    tab: str = ""
    """Its name in the navigation; empty if it is not there."""
    query: tuple[str, ...] = ()
    """Names in its query; others are ignored."""
    slow: bool = False
    """True if it takes seconds in a long run, and must not hold up others."""


class Data(NamedTuple):
    """JSON for the script of a page, or another document that is sent as ``load`` returns it."""

    path: str
    """Below the run's address: ``data/NAME.json``."""
    load: Callable[[RunSource, Values], bytes]
    query: tuple[str, ...] = ()
    tab: str = ""
    slow: bool = False
    media_type: str = "application/json"


def load_overview(source: RunSource, _: Values) -> Mapping[str, Any]:
    """Load the state of the run, the best agent over time, and what is running now."""
    run, view = source.run, source.view()
    curve = source.memo("curve", lambda: compute_curve(run))
    seed = TallyView.of(run.tree.own(AgentId(0))) if run.tree.agents else None
    return {
        "view": view,
        "best": view.best.agent if view.best else None,
        "facts": run_facts(view).rows,
        "figures": draw_progress(curve, seed, paid=bool(view.spend.usd)) if seed else {},
        "waiting": [WaitingChildView.load(run, *item) for item in run.tree.waiting.items()],
    }


def load_agents(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load one page of the list of agents."""
    tree, states = source.run.tree, agent_states(source.run)
    words, sort = values.get("words", "").casefold(), values.get("sort", "bound")
    orders: Mapping[str, Callable[[Agent], Any]] = {
        "bound": lambda agent: -lower_bound(tree.own(agent.id)),
        "rate": lambda agent: -tree.own(agent.id).rate,
        "clade": lambda agent: -tree.clade(agent.id).rate,
        "newest": lambda agent: -agent.id,
        "oldest": lambda agent: agent.id,
    }
    agents = [
        agent
        for agent in tree.agents
        if words in f"{agent.id} {agent.operator} {tree.aim(agent.id)} {agent.rationale}".casefold()
    ]
    agents.sort(key=orders.get(sort, orders["bound"]))
    part = Part.of(len(agents), values)
    best = source.best() if agents else None
    rows = [AgentRow.of(tree, agent, best, states) for agent in agents[part.start : part.end]]
    return {"rows": rows, "best": best, "part": part, "orders": list(orders), "sort": sort}


def load_agent(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load one agent in full."""
    agent, best = find_agent(source.run, values["agent"]), source.best()
    accounts = source.memo("accounts", lambda: Accounts(source.run))
    view = AgentView.load(source.run, agent, best, accounts)
    return {
        "view": view,
        "best": best,
        "facts": agent_facts(view).rows,
        "lineage": [step.id for step in trace_lineage(source.run.tree, agent.id)],
        "finding": finding_text,
    }


def load_diff(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load what an agent changes against its parent or another agent."""
    run, agent = source.run, find_agent(source.run, values["agent"])
    other = find_agent(run, values["other"]) if values.get("other") else None
    view = DiffView.load(run, agent, other)
    command = f"dgm show {one_line(run.name, 100)} {agent.id} {view.base} --diff"
    return {
        "view": view,
        "excerpt": excerpt_diff(view.patch, DIFF_CHARS, command),
        "title": f"Agent {agent.id} against agent {view.base}",
        "agents": (agent.id, view.base),
    }


def load_waiting(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load the change of a child that waits for approval."""
    run, action = source.run, ActionId(parse_number(values["child"], "child"))
    if action not in run.tree.waiting:
        raise UserError(f"child {action} does not wait for approval")
    child = WaitingChildView.load(run, action, run.tree.waiting[action])
    patch = decode(read_waiting_patch(run, action))
    command = f"dgm show {one_line(run.name, 100)} {action} --diff"
    return {
        "child": child,
        "excerpt": excerpt_diff(patch, DIFF_CHARS, command),
        "title": f"Child {action} of agent {child.parents[0]}",
        "agents": child.parents,
    }


def load_task(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load the attempts of all agents, or of one, at a task."""
    run, task = source.run, values["task"]
    if task not in run.tree.tasks:
        task = next((name for name in run.tree.tasks if address_name(name) == task), task)
    if "agent" in values:
        attempts = AgentTaskView.load(run, find_agent(run, values["agent"]), task).attempts
        return {"task": task, "attempts": attempts, "tally": None, "part": Part(0, len(attempts), 0)}
    view = TaskView.load(run, TaskId(task))
    if not view.attempts and task not in run.tree.tasks:
        raise UserError(f"no task {one_line(task, 100)}")
    part = Part.of(len(view.attempts), values)
    return {
        "task": task,
        "attempts": view.attempts[part.start : part.end],
        "tally": view.tally,
        "part": part,
    }


def load_action(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load an evaluation or an expansion: its outcome, what it left, and its conversations."""
    run, action = source.run, ActionId(parse_number(values["action"], "action"))
    events = run.store.events_of_action(action)
    start = next((item for item in events if isinstance(item.event, ActionStarted)), None)
    if start is None or not isinstance(start.event, ActionStarted):
        raise UserError(f"no action {action}")
    ended = run.outcome(action)
    outcome = getattr(ended.event, "outcome", None) if ended else None
    cost = outcome.cost if outcome else Cost()
    turns = [*iter_turns(TranscriptView.load(run, action))]
    part = Part.of(len(turns), values)
    patch = read_document(run, cost, "patch")
    return {
        "action": action,
        "started": start,
        "what": start.event.action,
        "evaluates": isinstance(start.event.action, Evaluate),
        "ended": EventView.of(ended) if ended else None,
        "child": ended.event.id if ended and isinstance(ended.event, AgentBorn) else None,
        "attempt": ended.event.outcome if ended and isinstance(ended.event, TaskGraded) else None,
        "seconds": cost.seconds,
        "spend": SpendView.by_role(read_usage(run, [action]).get(action, {})),
        "findings": [
            finding_text(finding) for finding in FindingView.all_of(outcome.findings if outcome else ())
        ],
        "excerpt": excerpt_diff(patch, DIFF_CHARS, "dgm show") if patch else None,
        "documents": {
            name: read_document(run, cost, name) for name in sorted(cost.traces) if name != "patch"
        },
        "turns": turns[part.start : part.end],
        "part": part,
    }


def load_operators(source: RunSource, _: Values) -> Mapping[str, Any]:
    """Load what each operator did."""
    lines = source.memo("operators", lambda: read_operators(source.run))
    gains = draw_operators(lines)
    return {
        "lines": lines,
        "gains": gains,
        "gain": operator_gain,
        "remarks": operator_remarks,
        "judged": JUDGED,
    }


def load_spend(source: RunSource, _: Values) -> Mapping[str, Any]:
    """Load what the search took, by role and model, and by purpose."""
    return {"spend": read_spend(source.run), "view": source.view()}


def load_events(source: RunSource, values: Values) -> Mapping[str, Any]:
    """Load events of the log, the newest first."""
    run = source.run
    before = parse_number(values.get("before") or str(run.tree.seq + 1), "before")
    quiet = values.get("all") != "1"
    events: list[EventView] = []
    step, end = ROWS, before
    while end > 1 and len(events) < ROWS:
        # Detailed events are many; look further back in growing steps.
        begin = max(0, end - 1 - step)
        views = [EventView.of(item) for item in run.store.read(begin, end - 1 - begin)]
        events += [view for view in reversed(views) if not (quiet and view.level is Level.DETAIL)]
        end, step = begin + 1, min(4 * step, 20_000)
    older = events[ROWS - 1].seq if len(events) >= ROWS else None
    return {"events": events[:ROWS], "older": older, "quiet": quiet, "before": values.get("before", "")}


def load_report(source: RunSource, _: Values) -> bytes:
    """Load the report that ``dgm report --html`` writes."""
    return render_page(ReportView.load(source.run, source.best()))


class Part(NamedTuple):
    """A part of a long list."""

    start: int
    end: int
    total: int
    """Length of the whole list."""

    @classmethod
    def of(cls, count: int, values: Values) -> "Part":
        """Return the part that a query asks for with ``from``."""
        start = min(parse_number(values.get("from") or "0", "from"), max(0, count - 1))
        return cls(start, min(count, start + ROWS), count)


def read_document(run: Run, cost: Cost, name: str) -> str:
    """Return a trace as text; of one that is damaged, why."""
    if name not in cost.traces:
        return ""
    try:
        return decode(run.traces.get(cost.traces[name]))
    except ArchiveCorrupt as error:
        return str(error)


def iter_turns(view: TranscriptView) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of conversations with their headings, each as one item of a list."""
    for number, thread in enumerate(view.threads, 1):
        yield {"kind": "thread", "number": number, "of": len(view.threads), "thread": thread}
        for segment in thread.segments:
            if segment.left_out:
                yield {"kind": "gap", "left_out": segment.left_out}
            for turn in segment.turns:
                tools = [(call.name, _indent(call.arguments)) for call in turn.tools]
                yield {"kind": "turn", "turn": turn, "tools": tools}
    if view.problem:
        yield {"kind": "problem", "problem": view.problem}


def _indent(arguments: str) -> str:
    """Return JSON with a line for each value, and its texts as they are; anything else unchanged."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(values, dict):
        return arguments
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )


PAGES: Sequence[Page] = (
    Page("", "overview.html", load_overview, "Overview", slow=True),
    Page("tree", "tree.html", tree.load_page, "Tree"),
    Page("matrix", "matrix.html", matrix.load_page, "Tasks × agents"),
    Page("agents", "agents.html", load_agents, "Agents", ("from", "sort", "words")),
    Page("agents/{agent}", "agent.html", load_agent, slow=True),
    Page("agents/{agent}/diff", "diff.html", load_diff, query=("other",)),
    Page("agents/{agent}/tasks/{task:path}", "task.html", load_task),
    Page("tasks/{task:path}", "task.html", load_task, query=("from",)),
    Page("actions/{action}", "action.html", load_action, query=("from",)),
    Page("waiting/{child}", "diff.html", load_waiting),
    Page("operators", "operators.html", load_operators, "Operators", slow=True),
    Page("spend", "spend.html", load_spend, "Spend", slow=True),
    Page("events", "events.html", load_events, "Events", ("before", "all")),
)
DATA: Sequence[Data] = (
    Data("report", load_report, tab="Report", slow=True, media_type="text/html"),
    Data("data/tree.json", tree.load_tree, ("since",)),
    Data("data/row.json", tree.load_row, ("agent",)),
    Data("data/search.json", tree.load_matches, ("words",)),
    Data("data/tasks.json", matrix.load_tasks),
    Data("data/cells.json", matrix.load_cells, ("agents",)),
)
