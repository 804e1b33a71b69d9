"""Reports and comparisons on a terminal, and the sentences that the page shares with it."""

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dgm.domain import SEED
from dgm.evaluation.control import Unit
from dgm.render import fmt
from dgm.render.probe_text import state_text
from dgm.render.safe import neutralise, one_line
from dgm.views.comparison import ComparedRun, ComparisonView, GroupPairs, TaskPairs
from dgm.views.holdout import POWERFUL, WORTH_FINDING, Answer, DifferenceView, HoldoutView
from dgm.views.objective import CheapestView
from dgm.views.report import OperatorView, ReportView, RootView
from dgm.views.values import TallyView, UsageView

SHOWN = 3
"""Maximum number of operators, models and task groups that a terminal shows."""
SHOWN_ON_FRONT = 6
"""Maximum number of agents of the front whose means are shown."""
KINDS = 8
"""Maximum number of stages or aims that are named."""
FEW_PAIRS = 6
"""Fewer pairs than this make a rough interval."""
STYLES = {Answer.BETTER: "green", Answer.WORSE: "red"}


def render_report(view: ReportView) -> RenderableType:
    """Return the report: the answer in three lines, then what it rests on."""
    style = "yellow" if view.best.agent == SEED else STYLES.get(view.answer, "yellow")
    answer = _grid(
        ("better?", Text(answer_text(view), style)),
        ("by how much?", Text(gain_text(view))),
        ("at what cost?", Text(cost_text(view))),
    )
    rows = [
        *_search_rows(view),
        *(("" if number else "roots", Text(root_text(root))) for number, root in enumerate(view.roots)),
        *_holdout_rows(view),
        *([] if view.simulated else [("probes", probes_text(view))]),
        *_operator_rows(view),
        *_spend_rows(view),
    ]
    rows += [("drift", Text(drift_text(view)))] if len(view.drift.steps) > 1 else []
    rows += [("warning", Text(one_line(warning, 400), "yellow")) for warning in view.warnings]
    return Group(answer, Text(), _grid(*rows, ("note", Text(neutralise(view.note), "yellow"))))


def answer_text(view: ReportView) -> str:
    """Return the answer to: is the best agent better?"""
    holdout = view.holdout
    p = f" (McNemar {fmt.p_value(holdout.mcnemar_p)})" if holdout and holdout.mcnemar_p is not None else ""
    return view.headline + p


def gain_text(view: ReportView) -> str:
    """Return the answer to: by how much?"""
    best, seed, holdout = view.best.own, view.seed_agent.own, view.holdout
    if view.best.agent == SEED:
        tasks = f"resolves {fmt.tally_interval(best)} of the search tasks" if best.n else "has no verdict yet"
        return f"by nothing: the best agent is the seed, which {tasks}"
    if holdout and holdout.difference:
        return (
            f"{_points(holdout.difference.mean)} points on the holdout tasks, {_interval(holdout.difference)}"
        )
    if view.curriculum and view.curriculum.changes > 1:
        return "not known without the holdout tasks: the agents met different search tasks"
    if not best.n or not seed.n:
        return "not known: the seed or the best agent has no verdict on the search tasks yet"
    both = f"{fmt.interval(best.interval)} against {fmt.interval(seed.interval)}"
    return f"{_points(best.rate - seed.rate)} points on the search tasks, which flatter: {both}"


def cost_text(view: ReportView) -> str:
    """Return the answer to: at what cost?"""
    holdout = view.holdout
    more = f"; holdout evaluation {_amount(holdout.spend)}" if holdout and holdout.spend.calls else ""
    return f"{_amount(view.spend)}, {fmt.duration(view.seconds)}{more}"


def highest_text(view: ReportView) -> str:
    """Return why the agent with the highest rate is not the best one; empty if it is."""
    highest, best = view.highest, view.best
    if highest is None:
        return ""
    said = f"agent {highest.agent} has a higher rate ({fmt.tally_interval(highest.own)})"
    if highest.lower_bound < best.lower_bound:
        return f"{said}, but its lower bound is only {highest.lower_bound:.2f}: so few verdicts may be luck"
    return f"{said}, but {view.policy} also weighs its relatives' results and the tasks' difficulty"


def holdout_sentences(view: ReportView) -> Iterator[str]:
    """Yield what else is to be known of complete holdout evaluations."""
    holdout = view.holdout
    if holdout is None or holdout.missing or holdout.itself:
        return
    if holdout.examined > 1:
        yield (
            f"{holdout.examined} agents of this run were evaluated on these tasks; p is not corrected for that: the "
            "more there are, the sooner one looks better by luck"
        )
    if power := holdout.power:
        yield (
            f"power: {holdout.seed_agent.n} tasks show a true gain of {100 * WORTH_FINDING:.0f} points with a "
            f"probability of {power.power:.0%} (if {power.lost:.0%} of the tasks are lost); {POWERFUL:.0%} takes "
            f"{power.tasks_for_80_percent} tasks"
        )
    if holdout.ungraded:
        yield f"{holdout.ungraded} of {holdout.tasks} holdout tasks have no pair of verdicts (abandoned)"


def control_sentences(view: ReportView) -> Iterator[str]:
    """Yield the result of the control of equal spend, or how to perform it."""
    holdout = view.holdout
    if holdout is None or holdout.missing or holdout.itself:
        return
    control = holdout.control
    if control is None:
        if not view.repeats:
            yield f"not performed ({holdout_command(view)} --control does it)"
        return
    spent = amount_text(control.search, control.unit)
    if control.wanted == 1:
        yield f"the {spent} of the search pay for no further attempt of the seed"
        return
    bound = f"; it was given at most {control.bound}" if control.wanted < control.affordable else ""
    yield (
        f"the {spent} of the search pay for {control.affordable:,} attempts of the seed at each holdout task{bound}; "
        f"the further attempts took {amount_text(control.took, control.unit)} (resolved tasks are not tried again)"
    )
    p = f"; exact McNemar {fmt.p_value(control.mcnemar_p)}" if control.mcnemar_p is not None else ""
    yield (
        f"with {fmt.count(control.attempts, 'attempt')} the seed resolves {control.seed_any.resolved} of "
        f"{control.seed_any.n} tasks, with one {control.seed_once.resolved}; the best agent with one "
        f"{control.best.resolved}: {len(control.gained)} that the control misses, while it misses {len(control.lost)} "
        f"that the control resolves{p}. This is a description: one attempt of each decides"
    )
    if control.missing:
        yield (
            f"the control is not complete: every task has had {control.attempts} of "
            f"{fmt.count(control.wanted, 'attempt')}, and up to {control.missing:,} more are left"
        )
    if view.repeats:
        yield "the attempts are not independent: this model gives equal answers to equal requests"


def holdout_command(view: ReportView) -> str:
    """Return the shell command that begins or continues the holdout evaluations."""
    return f"dgm report {shlex.quote(one_line(view.run, 100))} --holdout"


def saving_text(usd: float) -> str:
    """Return what the providers' caches saved; empty for next to nothing."""
    if abs(usd) < 0.00005:
        return ""
    if usd < 0:
        return f"writing to the providers' caches cost {fmt.money(-usd)} more than reading from them saved"
    return f"the providers' caches saved {fmt.money(usd)}"


def amount_text(value: float, unit: Unit) -> str:
    """Return ``1.23 USD``, ``9.7M tokens``, ``2.5 hours of work``."""
    match unit:
        case Unit.USD:
            return fmt.money(value)
        case Unit.TOKENS:
            return f"{fmt.short_number(value)} tokens"
        case Unit.SECONDS:
            return f"{value / 3600:.1f} hours of work" if value >= 3600 else f"{value:.0f} seconds of work"


def drift_text(view: ReportView) -> str:
    """Return how the best agent differs from the seed in conduct, size and cost, on one line."""
    first, last = view.drift.steps[0], view.drift.steps[-1]
    sizes = [fmt.short_number(step.source_bytes or 0) for step in (first, last)]
    money = any(step.usd_per_task for step in (first, last))
    costs = [
        fmt.money(step.usd_per_task) if money else fmt.short_number(step.tokens_per_task)
        for step in (first, last)
    ]
    findings = sum(step.findings for step in view.drift.steps)
    return (
        f"seed → best: misconduct {first.findings} → {last.findings} ({findings} on the line), "
        f"source {sizes[0]} → {sizes[1]} bytes, {costs[0]} → {costs[1]}{'' if money else ' tokens'} a task, "
        f"calls {first.calls_per_task:.1f} → {last.calls_per_task:.1f} a task, "
        f"refusals {first.refusals} → {last.refusals}"
    )


def root_text(root: RootView) -> str:
    """Return the results of a root and its clade on one line."""
    return (
        f"agent {root.agent} {one_line(root.name, 24)} {fmt.tally_interval(root.own)}; "
        f"clade {fmt.tally_interval(root.clade)} of {fmt.count(root.agents, 'agent')}, its best {root.best.agent}: "
        f"{fmt.tally_interval(root.best.own)}, lower bound {root.best.lower_bound:.2f}; "
        f"{fmt.count(root.children, 'child', 'children')}; {fmt.spend(root.spend)}"
    )


def operator_text(line: OperatorView) -> str:
    """Return the results of an operator on one line."""
    parts = [f"{line.tried} tried, {line.born} born, {line.better} of {line.judged} judged better"]
    if line.gain:
        parts.append(f"gain {operator_gain(line)} points")
    if line.tested:
        parts.append(f"kept {line.kept} of {line.tested} predictions")
    return ", ".join([*parts, fmt.spend(line.spend)])


def operator_gain(line: OperatorView) -> str:
    """Return the mean gain in points: ``+3.1 [-2.0, +8.2]``; a dash without a judged child."""
    if line.gain is None:
        return fmt.DASH
    ends = line.gain.interval
    within = f"[{fmt.points(ends[0])}, {fmt.points(ends[1])}]" if ends else "(one child)"
    return f"{fmt.points(line.gain.mean)} {within}"


def operator_remarks(line: OperatorView) -> str:
    """Return what became of an operator's other expansions: ``stillborn: check 2; 1 unfinished``."""
    parts = [
        f"{name}: {', '.join(f'{one_line(kind, 40)} {count}' for kind, count in [*counts.items()][:KINDS])}"
        for name, counts in (("stillborn", line.stillborn), ("aims", line.aims))
        if counts
    ]
    parts += [f"kept {line.kept} of {line.tested} predictions"] if line.tested else []
    parts += [f"{line.waiting} waiting for approval"] if line.waiting else []
    return "; ".join([*parts, f"{line.unfinished} unfinished"] if line.unfinished else parts)


def _search_rows(view: ReportView) -> Iterator[tuple[str, Text]]:
    best, seed = view.best, view.seed_agent
    flatter = "" if best.agent == SEED else "; chosen on these, so they flatter the best agent"
    for name, agent in (("search tasks", seed), ("", best))[: 1 if best.agent == SEED else 2]:
        text = Text(
            f"{'best' if agent.best else 'seed'}  agent {agent.agent:<4} {fmt.tally_interval(agent.own)}"
        )
        if agent.abandoned:
            text.append(f", {fmt.count(agent.abandoned, 'task')} abandoned", "yellow")
        if agent.best:
            text.append(f"  {fmt.BEST} lower bound {agent.lower_bound:.2f}{flatter}")
        yield name, text
    if view.curriculum:
        yield "", Text(fmt.curriculum(view.curriculum))
    if chosen := view.chosen if best.agent != SEED else None:
        corrected = f"{chosen.rate:.0%} is {chosen.corrected_rate:.0%} if corrected for the choice"
        yield "", Text(f"{corrected} among {chosen.evaluated} agents")
    if highest := highest_text(view):
        yield "", Text(highest)
    for group in (*view.groups.kinds[:SHOWN], *view.groups.modules[:SHOWN]):
        result = f"seed {fmt.tally(group.seed_agent)}, best {fmt.tally(group.best)}"
        yield "", Text(f"{one_line(group.name, 60)}: {fmt.count(group.tasks, 'task')}, {result}")


def _holdout_rows(view: ReportView) -> Iterator[tuple[str, Text]]:
    holdout = view.holdout
    if view.simulated:
        yield "holdout tasks", Text("none: a simulated run has no benchmark", "dim")
        return
    if holdout is None or holdout.missing:
        verb = "continues" if holdout else "performs"
        yield "holdout tasks", Text(f"{holdout_command(view)} {verb} the evaluation", "yellow")
        return
    yield "holdout tasks", _candidate("seed", SEED, holdout.seed_agent, holdout)
    if not holdout.itself:
        yield "", _candidate("best", view.best.agent, holdout.best, holdout)
        yield "", Text(f"{len(holdout.gained)} gained, {len(holdout.lost)} lost")
    for sentence in holdout_sentences(view):
        yield "", Text(sentence)
    for number, sentence in enumerate(control_sentences(view)):
        yield "" if number else "equal spend", Text(sentence)


def _candidate(name: str, agent: int, tally: TallyView, holdout: HoldoutView) -> Text:
    usage = holdout.spend.best if name == "best" else holdout.spend.seed_agent
    if usage.usd_per_resolved:
        cost = f", {fmt.money(usage.usd_per_resolved)} for each resolved task"
    else:
        tokens = usage.tokens_per_resolved
        cost = f", {fmt.short_number(tokens)} tokens for each resolved task" if tokens else ""
    return Text(f"{name}  agent {agent:<4} {fmt.tally_interval(tally)}{cost}")


def _operator_rows(view: ReportView) -> Iterator[tuple[str, Text]]:
    if view.promotions:
        yield "promotion", Text(fmt.promotions(view.promotions))
    if text := cheapest_text(view.cheapest):
        yield "cheapest", Text(text)
    for number, sentence in enumerate(objective_sentences(view)):
        yield "" if number else "objective", Text(sentence)
    for number, line in enumerate(view.operators[:SHOWN]):
        yield "" if number else "operators", Text(f"{one_line(line.operator, 24)}: {operator_text(line)}")
    if len(view.operators) > SHOWN:
        yield "", Text(f"and {len(view.operators) - SHOWN} more (--json has all)", "dim")


def cheapest_text(view: CheapestView) -> str:
    """Return the cheapest agent that is not worse than the best one, or who may be; empty if nobody is cheaper."""
    agent = view.shown or view.candidate
    if agent is None:
        return ""
    unit = {"usd": "USD", "seconds": "wall time"}.get(view.unit, view.unit)
    rate = f"{_points(agent.difference)} points of rate on {fmt.count(agent.tasks, 'common task')}"
    facts = f"agent {agent.agent} takes {agent.share:.0%} of the best agent's {unit} ({rate})"
    bound = f"95 % sure of at least {_points(agent.lower_bound)}"
    margin = f"the margin is {100 * view.margin:g} points"
    if view.shown:
        return f"{facts} and is not worse: {bound}, {margin}"
    return f"{facts}, but is not shown to be not worse: {bound}, {margin}"


def objective_sentences(view: ReportView) -> Iterator[str]:
    """Yield the front, the agent with the highest weighted sum, and the means of both, of the seed and of the best."""
    if (objective := view.objective) is None:
        return
    agents = {each.agent: each for each in objective.agents}
    front = [each.agent for each in objective.agents if each.front]
    if objective.front:
        names = one_line(", ".join(objective.front), 200)
        yield f"{fmt.FRONT} on the front of {names}: {_agents_text(front)}"
    if objective.leading is not None:
        weights = " ".join(f"{weight:+g} {name}" for name, weight in objective.weights.items())
        yield f"agent {objective.leading} has the highest mean of {one_line(weights, 200)}"
    for agent in dict.fromkeys(
        (view.seed_agent.agent, view.best.agent, *front[:SHOWN_ON_FRONT], objective.leading)
    ):
        if agent in agents:
            means = ", ".join(f"{name} {_mean(value)}" for name, value in agents[agent].means.items())
            yield f"agent {agent}: {one_line(means, 400)} ({fmt.count(agents[agent].tasks, 'task')})"


def _mean(value: float) -> str:
    return fmt.short_number(value) if abs(value) >= 1000 else f"{value:.3g}"


def _agents_text(agents: Sequence[int]) -> str:
    return f"agents {', '.join(map(str, agents))}" if agents else "no agent with enough verdicts yet"


def probes_text(view: ReportView) -> Text:
    """Return the state of the best agent's probes, or how to probe it; empty for a simulation."""
    if view.simulated:
        return Text()
    if not view.probes.probes:
        command = f"dgm probe {shlex.quote(one_line(view.run, 100))} {view.best.agent}"
        return state_text(view.probes).append(f": {command} tries its solutions for insecure code")
    failed = ", ".join(one_line(name, 80) for name in view.probes.failed)
    return state_text(view.probes).append(f": {failed}" if failed else "")


def _spend_rows(view: ReportView) -> Iterator[tuple[str, Text]]:
    for number, part in enumerate(view.spend.by[:SHOWN]):
        yield (
            "" if number else "spend",
            Text(f"{one_line(f'{part.role} {part.model}', 60)}: {fmt.usage(part)}"),
        )
    if saving := saving_text(view.spend.saved_usd):
        yield "", Text(saving)


def render_comparison(view: ComparisonView) -> RenderableType:
    """Return a table of the runs, their paired differences, and notes."""
    head = Text(f"{fmt.count(len(view.runs), 'run')} on {one_line(view.benchmark, 80)}", "bold")
    head.append(f"; {fmt.BEST} is the agent that a run's policy recommends", "default")
    parts: list[RenderableType] = [head, _run_table(view.runs), Text()]
    if view.group_by and len(view.groups) > 1:
        others = "".join(f" and {key}" for key in view.paired_by[1:])
        parts.append(
            Text(
                f"grouped by {one_line(view.group_by, 60)}; a pair is a run of each group with the same seed{others}"
            )
        )
        parts += [_grid(*_group_rows(view.pairs_of_runs))]
    elif view.pairs_of_tasks:
        parts.append(
            Text(f"each run against {one_line(view.runs[0].run, 160)}, on tasks that both have a verdict on")
        )
        parts += [_grid(*map(_task_row, view.pairs_of_tasks))]
    parts += [Text(f"note: {one_line(note, 400)}", "dim") for note in view.notes]
    return Group(*parts)


def _run_table(runs: Sequence[ComparedRun]) -> Table:
    holdout = any(run.holdout for run in runs)
    table = Table(box=None, pad_edge=False, header_style="cyan")
    table.add_column("run", overflow="fold", min_width=12)
    for name in ("state", "policy"):
        table.add_column(name, min_width=7)
    for name in (
        "seed",
        "evaluations",
        "agents",
        "spend",
        f"{fmt.BEST} best",
        "bound",
        *(["holdout"] if holdout else []),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        abandoned = f", {fmt.count(run.best.abandoned, 'task')} abandoned" if run.best.abandoned else ""
        cells = [one_line(run.run, 40), one_line(run.state, 40), one_line(run.policy, 24), str(run.seed)]
        cells += [f"{run.evaluations:,}", f"{run.agents:,}"]
        cells += [fmt.money(run.usd) if run.usd else f"{fmt.short_number(run.tokens)} tokens"]
        cells += [
            f"{run.best.agent}: {fmt.tally_interval(run.best.own)}{abandoned}",
            f"{run.best.lower_bound:.2f}",
        ]
        cells += [fmt.tally(run.holdout) if run.holdout else fmt.DASH] if holdout else []
        table.add_row(*map(Text, cells))
    return table


def _group_rows(groups: Sequence[GroupPairs]) -> Iterator[tuple[str, Text]]:
    for group in groups:
        text = Text(f"{group.measure}: ")
        if group.mean is None:
            text.append("no seed has a run with a verdict in both groups", "dim")
        else:
            few = len(group.pairs) < FEW_PAIRS
            within = f" [{group.interval[0]:+.3f}, {group.interval[1]:+.3f}]" if group.interval else ""
            rough = " (rough: so few pairs)" if few and group.interval else ""
            text.append(
                f"{group.mean:+.3f}{within} over {fmt.count(len(group.pairs), 'pair')}{rough}",
                "dim" if few else "",
            )
        yield one_line(f"{group.second} − {group.first}", 60), text


def _task_row(pair: TaskPairs) -> tuple[str, Text]:
    name = one_line(pair.second, 60)
    if not pair.pairs:
        return name, Text(f"{pair.tasks}: no common task", "dim")
    difference = pair.difference
    ends = difference.interval if difference else None
    within = (
        f", {_points(difference.mean)} [{_points(ends[0])}, {_points(ends[1])}] points"
        if difference and ends
        else ""
    )
    p = f"; exact McNemar {fmt.p_value(pair.mcnemar_p)}" if pair.mcnemar_p is not None else ""
    counts = f"{fmt.tally(pair.second_tally)} against {fmt.tally(pair.first_tally)}"
    flatter = " (flatters: the agents were chosen on these)" if pair.tasks == "search tasks" else ""
    changed = f"{len(pair.gained)} gained, {len(pair.lost)} lost"
    return name, Text(f"{pair.tasks}: {counts}{within}; {changed}{p}{flatter}")


def _grid(*rows: tuple[str, Text]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), text)
    return grid


def _amount(usage: UsageView) -> str:
    tokens = f"{fmt.short_number(usage.tokens)} tokens"
    return f"{fmt.money(usage.usd)}, {tokens}" if usage.usd else tokens


def _points(difference: float) -> str:
    return f"{round(100 * difference):+}"


def _interval(difference: DifferenceView) -> str:
    if difference.interval is None:
        return "without an interval: all tasks went alike"
    low, high = difference.interval
    return f"{_points(low)} to {_points(high)} with 95 % confidence"
