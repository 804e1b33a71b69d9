"""Views on the terminal, as rich renderables: facts in two columns, tables, and trees.

Every text of an agent or a model passes ``one_line`` or ``neutralise``, and no string is read as rich markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dgm.render import fmt
from dgm.render.diff import LineKind, parse_diff
from dgm.render.probe_text import state_text
from dgm.render.safe import neutralise, one_line
from dgm.views.progress import nearest_limit
from dgm.views.run import models_text
from dgm.views.values import OFFLINE_NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dgm.views.agents import AgentRow, AgentView, AttemptView, LineageView, TreeView, WaitingChildView
    from dgm.views.conduct import FindingView
    from dgm.views.events import EventView
    from dgm.views.progress import ActionView, BudgetUse, NodeView
    from dgm.views.run import RunView
    from dgm.views.run_list import RunListView, RunRow
    from dgm.views.tasks import AgentTaskView, AttemptDetail, ThreadView, TranscriptView

QUIET_S = 600.0
"""Seconds without a sign of an action or a call after which it is marked."""
SHOWN = 8
"""Maximum number of actions, nodes or refusals that are listed; further ones are only counted."""
WIDE, WIDER = 100, 130
"""Widths in cells from which a tree has the intervals of rates, and the gains of clades."""
STEP = 3
"""Cells of indentation for each branching of a tree."""
LIVING = ("running", "paused")
STATE_STYLES = {"running": "green", "damaged": "red", "unreadable": "red", "not a run": "red"}
STATE_STYLES |= dict.fromkeys(("paused", "interrupted", "cannot go on"), "yellow")
VERDICT_STYLES = {"resolved": "green", "unresolved": "red", "invalid": "yellow"}
LEVEL_STYLES = {"good": "green", "bad": "red", "warning": "yellow", "info": "", "detail": "dim"}
DIFF_STYLES = {
    LineKind.HEAD: "bold",
    LineKind.HUNK: "cyan",
    LineKind.ADDED: "green",
    LineKind.REMOVED: "red",
    LineKind.NOTE: "dim",
}
_LIMITS = {"usd": "money", "seconds": "time"}
_PURPOSES = {
    "making": "making it",
    "evaluating": "evaluating it",
    "stillborn": "stillborn children",
    "unfinished": "unfinished children",
}


class Facts:
    """Names and values in two columns; a value can take several lines."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        """Names and values as plain text; a row without a name belongs to the one before."""
        self.table = Table.grid(padding=(0, 2))
        self.table.add_column(style="cyan", no_wrap=True, min_width=11)
        self.table.add_column(overflow="fold")

    def add(self, name: str, value: str | Text, style: str = "") -> None:
        """Add a fact; an empty value adds nothing."""
        if value:
            text = value if isinstance(value, Text) else Text(value, style=style)
            self.rows.append((name, text.plain))
            self.table.add_row(name, text)


def render_run(view: RunView) -> RenderableType:
    """Return the state of a run: what it is doing, how far it is, what it has spent, and when it will end."""
    return run_facts(view).table


def run_facts(view: RunView) -> Facts:
    """Return the facts of a run."""
    facts = Facts()
    state = Text.assemble(
        one_line(view.run, 120),
        " (",
        (one_line(view.state, 200), STATE_STYLES.get(view.state, "")),
        f", {fmt.duration(view.seconds)}{_running(view)})",
    )
    facts.add("run", state)
    facts.add("paused", one_line(view.paused, 200), "yellow")
    models = models_text(view.models)
    facts.add(
        "search",
        one_line(
            f"{view.benchmark} with {models}, policy {view.policy}, in {view.sandbox}, seed {view.seed}", 300
        ),
    )
    if view.waiting:
        children = fmt.count(view.waiting, "child waits", "children wait")
        facts.add("waiting", f"{children} for you: dgm approve {one_line(view.run, 120)}", "yellow")
    if view.curriculum:
        facts.add("tasks", fmt.curriculum(view.curriculum))
    dead = ", ".join(f"{times} {one_line(stage, 40)}" for stage, times in view.stillborn.items())
    facts.add("agents", f"{view.agents}" + (f"; stillborn: {dead}" if dead else ""))
    if view.findings:
        facts.add(
            "misconduct",
            f"{fmt.count(view.findings, 'finding')} against agents: dgm show {one_line(view.run, 120)}",
            "red",
        )
    _add_evaluations(facts, view)
    _add_spend(facts, view)
    _add_best(facts, view)
    _add_problems(facts, view)
    if view.offline:
        facts.add("note", OFFLINE_NOTE, "yellow")
    _add_activity(facts, view)
    return facts


def _running(view: RunView) -> str:
    if view.living:
        return f", {view.running} running"
    return f", {view.running} unfinished" if view.running else ""


def _add_evaluations(facts: Facts, view: RunView) -> None:
    counts, limit = view.evaluations, view.budget.get("evaluations")
    goal = f" of {limit.limit:,.0f}" if limit and not view.expansion_cost else ""
    invalid = f", {counts.invalid} invalid" if counts.invalid else ""
    facts.add(
        "evaluations",
        f"{counts.graded:,}{goal}: {counts.resolved:,} resolved, {counts.unresolved:,} unresolved{invalid}",
    )
    if view.expansion_cost and limit:
        facts.add(
            "budget",
            f"{counts.graded} evaluations and {view.expansions} expansions (each as {view.expansion_cost:g}) "
            f"used {limit.used:g} of {limit.limit:g} evaluations",
        )


def _add_spend(facts: Facts, view: RunView) -> None:
    limit, total = view.budget.get("usd"), fmt.usage(view.spend)
    if limit:
        total = total.replace(fmt.money(view.spend.usd), fmt.money_of(limit.used, limit.limit))
    cached = (
        f" ({fmt.percent(view.spend.cached_share)} of the input was cached)"
        if view.spend.cached_tokens
        else ""
    )
    facts.add("spend", total + cached)
    if len(view.spend.by) > 1:
        for part in view.spend.by:
            facts.add("", f"  {one_line(f'{part.role} {part.model}', 60)}: {fmt.usage(part)}", "dim")


def _add_best(facts: Facts, view: RunView) -> None:
    if view.best is None:
        return
    facts.add("best", Text.assemble((f"{fmt.BEST} ", "bold yellow"), agent_summary(view.best)))
    facts.add("", fmt.BEST_MEANS, "dim")
    if view.highest:
        why = "; not recommended: its lower bound is not higher, or the policy trusts it less"
        facts.add("highest rate", f"{agent_summary(view.highest)}{why}")
    if view.promotions:
        facts.add("promotion", fmt.promotions(view.promotions))


def agent_summary(row: AgentRow) -> str:
    """Return ``agent 7: 8/21 38% [21–59%], lower bound 0.18`` with the beginning of its rationale."""
    abandoned = f", {fmt.count(row.abandoned, 'task')} abandoned" if row.abandoned else ""
    rationale = f"  {one_line(row.rationale, 60)}" if row.rationale else ""
    return f"agent {row.agent}: {_own_text(row)}{abandoned}{rationale}"


def _own_text(row: AgentRow) -> str:
    return (
        f"{fmt.tally_interval(row.own)}, lower bound {row.lower_bound:.2f}" if row.own.n else "not evaluated"
    )


def _add_problems(facts: Facts, view: RunView) -> None:
    if view.refusals:
        codes = ", ".join(f"{one_line(count.reason, 40)} {count.times}" for count in view.failures.refused)
        facts.add("refused", f"{fmt.count(view.refusals, 'request')} of agents: {codes}")
    if end := view.dead_end:
        stages = ", ".join(f"{times} {one_line(stage, 40)}" for stage, times in end.stages.items())
        facts.add("stillborn", f"{stages} in a row; the last: {one_line(end.reason, 300)}", "yellow")
        facts.add("last output", "\n".join(one_line(line, 160) for line in end.output) or "none")
        facts.add("may help", end.may_help, "yellow")
    for model, words in view.model_notes.learned.items():
        facts.add("learned", f"{one_line(model, 80)}: {one_line('; '.join(words), 200)}")
    if wait := view.model_notes.waits:
        left = fmt.duration(wait.until - view.now_unix_s)
        facts.add("waits", f"{one_line(wait.model, 80)}, {left} more: {one_line(wait.words, 160)}", "yellow")
    for call in view.cut_calls:
        which = f"call {call.number} of action {call.action}" if call.action else "a check"
        counted = "counted" if call.in_spend else "will be counted"
        worst = f"{fmt.count(call.tokens, 'token')}, {fmt.money(call.usd)}"
        text = (
            f"{which} ({one_line(call.model, 80)}): {counted} at its worst case until it is answered: {worst}"
        )
        facts.add("cut off", text, "yellow")
    facts.add("changed", one_line(", ".join(view.changes), 300))
    if view.withdrawn:
        facts.add("withdrawn", f"{fmt.count(view.withdrawn, 'verdict')} after refusals of the model")


def _add_activity(facts: Facts, view: RunView) -> None:
    now = view.now_unix_s
    for number, action in enumerate(view.under_way[:SHOWN]):
        name = ("running" if view.living else "unfinished") if number == 0 else ""
        facts.add(name, _action_text(action, view))
    if len(view.under_way) > SHOWN:
        facts.add("", f"and {len(view.under_way) - SHOWN} more")
    if (calls := view.model_calls) and (calls.under_way or calls.waiting):
        text = Text(f"{calls.under_way} in progress")
        if calls.waiting and calls.oldest_wait_s is not None:
            style = "yellow" if calls.oldest_wait_s >= QUIET_S else ""
            text.append(
                f", {calls.waiting} waiting: the oldest for {fmt.duration(calls.oldest_wait_s)}", style
            )
        facts.add("model calls", text)
    for line in node_lines(view.nodes):
        facts.add("", line) if line.plain.startswith(" ") else facts.add("nodes", line)
    if view.rates:
        rates = view.rates
        facts.add(
            "rates",
            f"{rates.evaluations_per_hour:,.1f} evaluations/h, {rates.tokens_per_second:,.0f} tokens/s, "
            f"{fmt.money(rates.usd_per_hour)}/h (last {fmt.duration(rates.window_s)})",
        )
    if view.forecast:
        for number, (limit, use) in enumerate(view.budget.items()):
            if limit != "agents":
                facts.add("forecast" * (number == 0), _forecast_text(limit, use, view))
    _add_goals(facts, view)
    if view.began_unix_s:
        facts.add("began", fmt.clock(view.began_unix_s, now))
    if event := view.last_event:
        facts.add("last event", f"{fmt.clock(event.at_unix_s, now)}, {fmt.age(event.age_s)} ago")


def _action_text(action: ActionView, view: RunView) -> Text:
    if action.kind == "evaluate":
        again = f" (attempt {action.attempt})" if (action.attempt or 1) > 1 else ""
        what = f"agent {action.agent} on {one_line(action.task or '', 36)}{again}"
    else:
        what = f"child of {' and '.join(map(str, action.parents))} by {_operator(action.operator or '', action.aim)}"
    text = Text(f"{action.action:>4} {what}: ")
    quiet = view.living and action.last_event_age_s >= QUIET_S
    tries = f"; try {action.tries}" if action.tries > 1 else ""
    took = f"{fmt.duration(action.age_s)}, {fmt.count(action.model_calls, 'model call')}{tries}"
    since = f"since {fmt.clock(action.since_unix_s, view.now_unix_s)}"
    text.append(took if view.living else since, "yellow" if quiet else "dim")
    return text


def _operator(operator: str, aim: str | None) -> str:
    name = one_line(operator, 80)
    return f"{name}:{one_line(aim, 40)}" if aim else name


def _making(row: AgentRow) -> str:
    """Return the operator, and both parents of a crossover."""
    parents = f" of {' and '.join(map(str, row.parents))}" if len(row.parents) > 1 else ""
    return _operator(row.operator, row.aim) + parents


def _forecast_text(limit: str, use: BudgetUse, view: RunView) -> Text:
    text = Text(f"{_LIMITS.get(limit, limit)} {fmt.use_of_limit(limit, use.used, use.limit)}: ")
    if use.left_s is None:
        return text.append(use.unknown or "")
    binding = view.forecast is not None and view.forecast.binding == limit
    left = "used up"
    if use.left_s:
        left = f"{fmt.duration(use.left_s)} left, until {fmt.clock(view.now_unix_s + use.left_s, view.now_unix_s)}"
    text.append(left, "bold" if binding else "")
    return text.append("  ends the run first" if binding else "", "bold yellow")


def _add_goals(facts: Facts, view: RunView) -> None:
    if score := view.goals.until_score:
        who = "" if score.agent is None else f" (agent {score.agent})"
        facts.add(
            "until score", f"the best agent's lower bound is {score.lower_bound:.3f} of {score.limit:g}{who}"
        )
    if patience := view.goals.patience:
        soonest = patience.earliest_left_s
        left = "" if soonest is None else f"; ends in {fmt.duration(soonest)} at the earliest"
        text = f"{patience.evaluations_without_better} of {patience.limit} evaluations without a better agent{left}"
        facts.add("patience", text)


def node_lines(nodes: Sequence[NodeView]) -> Iterator[Text]:
    """Yield the sum of all nodes and a line for each, those with a problem first; nothing without nodes."""
    if not nodes:
        return
    slots, busy = sum(node.slots for node in nodes), sum(node.busy for node in nodes)
    yield Text(f"{busy:,} of {slots:,} slots busy on {fmt.count(len(nodes), 'node')}")
    for node in sorted(nodes, key=lambda node: (not node.problem, -node.failures))[:SHOWN]:
        failures = f", {fmt.count(node.failures, 'failure')}" if node.failures else ""
        line = Text(
            f"  {one_line(node.name, 40)}: {node.busy} of {node.slots} busy, {node.opened} opened{failures}"
        )
        yield line.append(f"; not used: {one_line(node.problem, 100)}" if node.problem else "", "yellow")
    if len(nodes) > SHOWN:
        yield Text(f"  and {len(nodes) - SHOWN:,} more")


def render_run_list(view: RunListView, now: float) -> RenderableType:
    """Return the list of runs, with notes below the table; ``now`` is the Unix time from which ages count."""
    if not view.runs:
        folders = " or ".join(one_line(folder, 200) for folder in view.folders)
        return Text(f"no runs in {folders}; start one with: dgm run")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("RUN", style="bold", no_wrap=True, max_width=40)
    for name in ("STATE", "LAST", "AGENTS", "BEST", "SPENT", "LIMIT"):
        table.add_column(
            name, no_wrap=True, overflow="ellipsis", justify="right" if name == "AGENTS" else "left"
        )
    for row in view.runs:
        table.add_row(*_run_cells(row, now))
    notes = [note for row in view.runs for note in _run_notes(row)]
    return Group(table, *notes)


def _run_cells(row: RunRow, now: float) -> Iterable[Text]:
    state = one_line(row.state, 26) + (f" (pid {row.pid})" if row.pid and row.state in LIVING else "")
    best, limit = row.best, nearest(row)
    cells = [
        fmt.age(now - row.last_event_at) if row.last_event_at else fmt.DASH,
        f"{row.agents:,}" if row.agents is not None else "",
        f"{best.agent}: {fmt.tally(best.own)}, ≥ {best.lower_bound:.2f}" if best and best.own.n else fmt.DASH,
        _spent(row),
        limit,
    ]
    if row.events is None:
        cells = [""] * len(cells)
    return [Text(one_line(row.run, 40)), Text(state, STATE_STYLES.get(row.state, "")), *map(Text, cells)]


def _spent(row: RunRow) -> str:
    if row.spend is None:
        return ""
    return fmt.money(row.spend.usd) if row.spend.usd else fmt.count(row.spend.tokens, "token")


def nearest(row: RunRow) -> str:
    """Return the use of the limit that is nearest to its end."""
    limits = row.budget or {}
    name = nearest_limit(limits)
    return fmt.use_of_limit(name, limits[name].used, limits[name].limit) if name else "no limit"


def _run_notes(row: RunRow) -> Iterator[Text]:
    name = one_line(row.run, 60)
    if row.problem:
        yield Text(f"{name}: {one_line(row.problem, 300)}", "yellow")
    if row.kind not in (None, "search"):
        yield Text(f"{name}: {row.kind}", "dim")
    if row.host:
        where = f"written on {one_line(row.host, 60)}"
        yield Text(
            f"{name}: {where}" + ("; it runs there, or this is a copy" if row.state in LIVING else ""), "dim"
        )
    elif row.written_here is False:
        yield Text(f"{name}: unpacked or copied, never written here", "dim")
    if row.waiting:
        children = fmt.count(row.waiting, "child waits", "children wait")
        yield Text(f"{name}: {children} for you: dgm approve {name}", "yellow")


def render_tree(view: TreeView, width: int | None = None) -> Iterator[Text]:
    """Yield a line for each agent, parents before children; a crossover's child stands under its first parent.

    An only child stands straight below its parent; only branchings are indented, up to a quarter of the width, so
    that no row is to the left of its parent's.

    Args:
        view: the tree.
        width: cells of a line; None in a pipe, where nothing bounds it.
    """
    if not view.agents:
        yield Text("no agent yet")
        return
    prefixes = dict(tree_prefixes(view.agents, max(2, (width or 144) // (4 * STEP))))
    stems = {agent: len(prefix) + len(str(agent)) for agent, prefix in prefixes.items()}
    stem = max(stems.values()) + 4
    tally = max(len(fmt.tally(row.own)) for row in view.agents)
    clade = max(len(fmt.tally(row.clade)) for row in view.agents)
    gain = max(len(fmt.clade_gain(row)) for row in view.agents)
    flagged = any(row.clade_findings for row in view.agents)
    width_of_promises = max(len(promises_text(row)) for row in view.agents)
    for agent, prefix in prefixes.items():
        row = view.agents[agent]
        line = Text.assemble((prefix, "dim"), (str(agent), "bold"), " ", marks(row))
        line.pad_right(max(0, stem - line.cell_len))
        line.append_text(bar(row)).append(f"  {fmt.tally(row.own):<{tally}} ")
        if width is None or width >= WIDE:
            line.append(f"{fmt.interval(row.own.interval) if row.own.n else '':<8}  ", "dim")
        line.append(f"clade {fmt.tally(row.clade) if row.children else fmt.DASH:<{clade}}  ", "dim")
        if gain and (width is None or width >= WIDER):
            line.append(f"gain {fmt.clade_gain(row) or fmt.DASH:<{gain}}  ", "dim")
        if flagged:
            line.append(f"{conduct_text(row):<12}  ", "red")
        if width_of_promises:
            line.append(f"{promises_text(row):<{width_of_promises}}  ", "dim")
        line.append(_making(row), "cyan").append(f"  {one_line(row.rationale, 200)}")
        if width is not None:
            line.truncate(width, overflow="ellipsis")
        yield line
    if view.best is not None:
        best = view.agents[view.best]
        yield Text.assemble((f"{fmt.BEST} best  ", "bold yellow"), agent_summary(best))
        yield Text(f"  {fmt.BEST_MEANS}", "dim")
    if any(row.front for row in view.agents):
        yield Text(
            f"{fmt.FRONT} on the Pareto front: no agent is better in one of its metrics and not worse in any",
            "dim",
        )
    if view.promotions:
        yield Text(f"promotion  {fmt.promotions(view.promotions)}")


def conduct_text(row: AgentRow) -> str:
    """Return an agent's findings and its clade's: ``⚑ 2, clade 5``; empty if there are none."""
    clade = f"clade {row.clade_findings}" if row.children and row.clade_findings else ""
    agent = f"{fmt.FLAG} {row.findings}" if row.findings else ""
    return ", ".join(filter(None, [agent, clade]))


def promises_text(row: AgentRow) -> str:
    """Return kept and tested predictions of an agent and its clade: ``kept 2/3, clade kept 5/9``; empty without any."""
    clade = f"clade kept {row.clade_kept}/{row.clade_tested}" if row.children and row.clade_tested else ""
    agent = f"kept {row.kept}/{row.tested}" if row.tested else ""
    return ", ".join(filter(None, [agent, clade]))


def tree_prefixes(agents: Sequence[AgentRow], most: int) -> Iterator[tuple[int, str]]:
    """Yield each agent with the guides in front of it, in the order of the rows.

    Args:
        agents: all agents; an agent's id is its index.
        most: maximum branchings that are drawn; deeper rows stop moving to the right.
    """
    children: list[list[int]] = [[] for _ in agents]
    for row in agents:
        if row.parents:
            children[row.parents[0]].append(row.agent)
    todo = [(row.agent, "", "") for row in reversed(agents) if not row.parents]
    while todo:
        agent, prefix, below = todo.pop()
        yield agent, prefix
        branches = len(children[agent]) > 1 or not agents[agent].parents
        deeper = branches and len(below) < most * STEP
        for number, child in enumerate(reversed(children[agent])):
            last = number == 0
            if deeper:
                todo.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
            else:
                todo.append((child, below, below))


def marks(row: AgentRow) -> Text:
    """Return the marks behind an agent's number: the best one's star, and its state."""
    state = fmt.STATE_MARKS[row.state]
    return Text.assemble(
        ((fmt.BEST if row.best else "") + (fmt.FRONT if row.front else ""), "bold yellow"),
        (state, "dim" if state == "†" else "yellow"),
    )


def bar(row: AgentRow) -> Text:
    """Return the bar of an agent's rate; dim with few verdicts."""
    drawn = fmt.bar(row.own.rate)
    full = drawn.rstrip("░")
    return Text.assemble((full, "green" if row.own.n >= 5 else "dim green"), (drawn[len(full) :], "dim"))


def render_lineage(view: LineageView, *, patches: bool = False) -> Iterator[Text]:
    """Yield a line for each step from the seed to the agent, with its diff if ``patches`` is set."""
    for step in view.lineage:
        line = Text.assemble((f"{step.agent:>4}", "bold"), " ", marks(step))
        line.pad_right(max(0, 8 - line.cell_len))
        line.append_text(bar(step)).append(f"  {fmt.tally_interval(step.own):<22}  ")
        line.append(_making(step), "cyan").append(f"  {one_line(step.rationale, 200)}")
        yield line
        if patches and step.patch:
            yield from render_patch(step.patch)


def render_patch(patch: str) -> Iterator[Text]:
    """Yield the lines of a patch as git writes it, neutralised."""
    for file in parse_diff(patch):
        for line in file.lines:
            yield Text(line.text, DIFF_STYLES.get(line.kind, ""))


def render_agent(view: AgentView) -> RenderableType:
    """Return one agent in full: origin, making, tallies, cost and evaluations."""
    return Group(agent_facts(view).table, *_account_lines(view), *_evaluation_lines(view.evaluations))


def agent_facts(view: AgentView) -> Facts:
    """Return the facts of an agent: origin, making and tallies."""
    facts = Facts()
    facts.add("agent", str(view.agent))
    facts.add("commit", view.commit)
    facts.add("parents", ", ".join(map(str, view.parents)) or "none (a seed)")
    facts.add("children", fmt.listing(view.children, 40))
    facts.add("operator", _operator(view.operator, view.aim))
    facts.add("rationale", one_line(view.rationale, 400))
    if view.best:
        facts.add("best", f"{fmt.BEST} {fmt.BEST_MEANS}", "yellow")
    making = view.making
    facts.add(
        "vetting",
        ", ".join(
            f"{one_line(stage, 40)} {took:.2f} s" for stage, took in making.vetting.items() if took >= 0.005
        ),
    )
    if making.offered:
        facts.add("evidence", fmt.count(making.offered, "file"))
    facts.add("statement", one_line(making.statement or "", 200))
    abandoned = f", {fmt.count(view.abandoned, 'task')} abandoned" if view.abandoned else ""
    facts.add("own", _own_text(view) + abandoned)
    facts.add("clade", fmt.tally_interval(view.clade))
    facts.add("clade's gain", fmt.clade_gain(view, in_full=True))
    facts.add("misconduct", conduct_text(view), "red")
    for finding in making.findings:
        facts.add("", one_line(finding_text(finding), 200), "red")
    facts.add("predictions", promises_text(view) or ("none tested yet" if view.predictions else ""))
    for each in view.predictions:
        facts.add("", one_line(": ".join(filter(None, [each.state, each.task, each.reason])), 200))
    for number, noted in enumerate(view.notes):
        facts.add("" if number else "notes", one_line(noted.text, 400))
    if view.delta:
        few = " (few tasks)" if view.delta.few else ""
        facts.add(
            "vs parent",
            f"{fmt.delta(view.delta)}{few}, in percentage points",
            "dim" if view.delta.few else "",
        )
    facts.add("probes", state_text(view.probes).plain, "" if view.probes.probes else "dim")
    return facts


def finding_text(finding: FindingView) -> str:
    """Return a finding on one line: ``special-case: loop.py:12: names a task of the benchmark``."""
    return ": ".join(filter(None, [finding.kind, finding.location, finding.detail]))


def waiting_child_lines(child: WaitingChildView, now: float) -> Iterator[str]:
    """Yield a child that waits for approval: its making, how long it waits, and an answer that is not read yet."""
    size = f"{fmt.count(child.files, 'file')}, +{child.added} -{child.removed}"
    left = "" if child.until is None else f", {fmt.duration(child.until - now)} left"
    waits = f"waits for {fmt.duration(now - child.since)}{left}"
    parents = " and ".join(map(str, child.parents))
    yield f"child {child.child} of {parents} ({one_line(child.operator, 80)}): {size}; {waits}"
    yield f"  {one_line(child.rationale, 200)}"
    if child.answer:
        yield f"  answered already, and not read yet: {one_line(f'{child.answer} {child.reason}', 120)}"
    if child.fault:
        yield f"  no answer: {one_line(child.fault, 200)}"


def _account_lines(view: AgentView) -> Iterator[Text]:
    account = view.spend
    parts = {name: getattr(account, purpose) for purpose, name in _PURPOSES.items()}
    if view.children:
        parts["its clade in all"] = account.clade
    parts = {name: usage for name, usage in parts.items() if usage.calls or usage.tokens or usage.usd}
    if parts:
        yield Text("spend:", "bold")
    for name, usage in parts.items():
        yield Text.assemble((f"  {name:<19} ", "cyan"), fmt.usage(usage))
    graded = {evaluation.action for evaluation in view.evaluations}
    for line in account.actions:
        if line.by.by and line.purpose != "making" and line.action not in graded:
            yield Text(
                f"  action {line.action} ({line.purpose}) without a result (yet): {fmt.usage(line.by)}", "dim"
            )
    if view.refusals:
        yield Text("refused or changed by the gateway:", "bold")
    for refusal in view.refusals[:SHOWN]:
        message = one_line(f"{refusal.code}: {refusal.message}", 150)
        yield Text.assemble((f"  {fmt.count(refusal.times, 'time')} ", "yellow"), message)
    if len(view.refusals) > SHOWN:
        yield Text(f"  and {len(view.refusals) - SHOWN} more")


def _evaluation_lines(evaluations: Sequence[AttemptView]) -> Iterator[Text]:
    if evaluations:
        yield Text("evaluations:", "bold")
    for evaluation in evaluations:
        yield Text("  ").append_text(attempt_line(evaluation))


def attempt_line(attempt: AttemptView) -> Text:
    """Return verdict, time, cost, task and reason of an evaluation."""
    mark = f"{fmt.VERDICT_MARKS[attempt.verdict]} {attempt.verdict:<10}"
    took = f" {attempt.seconds:7.1f} s  {attempt.cost.tokens:>9,} tokens  {fmt.money(attempt.cost.usd):>11}  "
    again = f" (attempt {attempt.attempt})" if attempt.attempt > 1 else ""
    return Text.assemble(
        (mark, VERDICT_STYLES[attempt.verdict]),
        (took, "dim"),
        (one_line(attempt.task, 120), "bold"),
        f"{again}: {one_line(attempt.reason, 100)}",
        *((f"  {fmt.FLAG} {one_line(finding_text(each), 120)}", "red") for each in attempt.findings),
    )


def render_agent_task(view: AgentTaskView) -> Iterator[Text]:
    """Yield each attempt of an agent at a task: verdict, patch, tests and transcript."""
    for attempt in view.attempts:
        yield attempt_line(attempt)
        yield from _document_lines(attempt)
        yield from render_transcript(attempt.transcript)


def _document_lines(attempt: AttemptDetail) -> Iterator[Text]:
    for name in ("patch", "tests", "log"):
        text = attempt.documents.get(name, "")
        if not text.strip():
            continue
        yield Text(f"── {name} ──", "bold cyan")
        yield from render_patch(text) if name == "patch" else map(Text, neutralise(text).splitlines())


def render_transcript(view: TranscriptView) -> Iterator[Text]:
    """Yield the conversations of an action, turn by turn."""
    for number, thread in enumerate(view.threads, 1):
        title = f" {number}" if len(view.threads) > 1 else ""
        yield Text(f"── conversation{title}: {fmt.count(thread.calls, 'model call')} ──", "bold cyan")
        yield from _thread_lines(thread)
    if view.problem:
        yield Text(f"further calls cannot be read: {one_line(view.problem, 300)}", "yellow")


def _thread_lines(thread: ThreadView) -> Iterator[Text]:
    for prompt in thread.prompts:
        yield Text("system", "cyan")
        yield from _indented(prompt.system)
        if prompt.tools:
            yield Text(f"  tools: {', '.join(one_line(tool.name, 60) for tool in prompt.tools)}", "dim")
    for segment in thread.segments:
        if segment.left_out:
            yield Text(f"── context without {fmt.count(segment.left_out, 'earlier message')} ──", "dim")
        for turn in segment.turns:
            yield Text(
                f"{turn.call:>4} {turn.role}" + (f" ({one_line(turn.model, 60)})" if turn.model else ""),
                "cyan",
            )
            if turn.error:
                yield Text(f"  error: {one_line(turn.error, 200)}", "red")
            yield from _indented(turn.reasoning, "dim italic")
            yield from _indented(turn.text)
            for call in turn.tools:
                yield Text.assemble(
                    "  → ", (one_line(call.name, 60), "bold"), f" {one_line(call.arguments, 400)}"
                )


def _indented(text: str, style: str = "") -> Iterator[Text]:
    return (Text(f"  {line}", style) for line in neutralise(text).expandtabs(4).splitlines())


def render_event(view: EventView) -> Text:
    """Return number, time, kind and action of an event, with its sentence or the beginning of its body."""
    what = one_line(view.message or view.model_dump_json(include={"body"})[8:-1], 160)
    action = "" if view.action is None else str(view.action)
    return Text.assemble(
        (f"{view.seq:>7}", "bold"),
        (f"  {fmt.timestamp(view.at)}  ", "dim"),
        (f"{view.kind:<15}", "cyan"),
        f" {action:>5}  ",
        (what, LEVEL_STYLES[view.level]),
    )
