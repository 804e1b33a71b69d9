"""Evaluations, replays and solutions on the terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dgm.archive.events import TasksChanged
from dgm.domain import Action, Evaluate
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.render.text import finding_text
from dgm.replay.again import Divergence, Match, StepAgain
from dgm.views.evaluation import AgentEvaluation, EvaluationView, PairedTallies
from dgm.views.events import describe
from dgm.views.replay import DecisionsReplay, EvaluationReplay, LiveReplay, RecordReplay, ReplayView
from dgm.views.values import OFFLINE_NOTE

NAME_CELLS = 80
REASON_CELLS = 160
LISTED = 20
"""Maximum number of unresolved tasks of an agent that are listed."""


def render_evaluation(view: EvaluationView) -> RenderableType:
    """Return the tallies of an evaluation, by agent and by tag, with the unresolved tasks and the cost."""
    which = (
        fmt.count(view.tasks, f"{view.split} task") if view.split != "all" else fmt.count(view.tasks, "task")
    )
    model = f" with {one_line(view.model, NAME_CELLS)}" if view.model else ""
    head = f"{which} of {one_line(view.benchmark, NAME_CELLS)}{model}; 95 % Wilson intervals over tasks"
    parts: list[RenderableType] = [Text(head), _table(_agent_rows(view))]
    if tags := list(_tag_rows(view)):
        parts += [Text("by tag:"), _table(tags)]
    if view.comparison:
        names = [one_line(agent.name, NAME_CELLS) for agent in view.agents]
        parts.append(Text(f"{names[1]} against {names[0]}: {_pairs_text(view.comparison)}"))
    parts += map(Text, _task_lines(view))
    spend = f"; {fmt.usage(view.spend)}" if view.spend.calls else ""
    parts.append(Text(f"recorded in {one_line(view.folder, 500)}{spend}"))
    if view.report:
        absent = view.report["total_instances"] - view.report["submitted_instances"]
        parts.append(Text(f"report in SWE-bench's form: {one_line(view.folder, 500)}/report.json"))
        if view.left_out:
            parts.append(Text(f"{fmt.count(view.left_out, 'other prediction')} left out, as asked"))
        if absent:
            parts.append(
                Text(f"{fmt.count(absent, 'task')} of the benchmark without a prediction, not counted")
            )
    return Group(*parts)


def incomplete_text(view: EvaluationView) -> str:
    """Return what is missing and how to get it, in a line for each; empty if the evaluation is complete."""
    lines = []
    if view.given_up:
        lines.append(
            f"{fmt.count(view.given_up, 'task')} given up and not counted: the infrastructure failed again and again"
        )
    if view.missing:
        more = " with more money" if view.ended == "budget spent" else ""
        # The message may quote a provider.
        message = one_line(view.message, 1_000)
        lines.append(
            f"{message}; {fmt.count(view.missing, 'evaluation')} missing; repeat the command{more} to continue"
        )
    return "\n".join(lines)


def _agent_rows(view: EvaluationView) -> Iterator[list[str]]:
    for agent in view.agents:
        cost = ""
        if view.model:
            each = agent.usd_per_resolved
            cost = fmt.money(agent.spend.usd) + (f", {fmt.money(each)} per resolved task" if each else "")
        given_up = f"{fmt.count(len(agent.given_up), 'task')} given up" if agent.given_up else ""
        yield [one_line(agent.name, NAME_CELLS), fmt.tally_interval(agent.tally), cost, given_up]


def _tag_rows(view: EvaluationView) -> Iterator[list[str]]:
    tags = sorted({tag for agent in view.agents for tag in agent.tags})
    # Tags that all tasks share, or that belong to one task each, are no information.
    if not 1 < len(tags) < view.tasks:
        return
    for tag in tags:
        for agent in view.agents:
            if tag in agent.tags:
                name = one_line(agent.name, NAME_CELLS)
                yield [one_line(tag, NAME_CELLS), name, fmt.tally_interval(agent.tags[tag])]


def _task_lines(view: EvaluationView) -> Iterator[str]:
    for agent in view.agents:
        name = one_line(agent.name, NAME_CELLS)
        if view.attempts > 1:
            outcomes = Counter(tried.outcome for tried in agent.outcomes.values())
            yield (
                f"{name}: all {view.attempts} attempts {fmt.tally(agent.all_attempts)}; "
                f"at least once {fmt.tally_interval(agent.any_attempt)}; tasks resolved "
                + ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in ("always", "sometimes", "never"))
            )
        flaky = [
            f"{one_line(task, NAME_CELLS)} {tried.resolved}/{tried.attempts}"
            for task, tried in agent.outcomes.items()
            if tried.outcome == "sometimes"
        ]
        if flaky:
            yield f"{name} sometimes resolved: {fmt.listing(flaky, LISTED)}"
        yield from _reason_lines(agent, name)
        for task, findings in list(agent.findings.items())[:LISTED]:
            words = one_line("; ".join(map(finding_text, findings)), REASON_CELLS)
            yield f"{name} {fmt.FLAG} {one_line(task, NAME_CELLS)}: {words}"


def _reason_lines(agent: AgentEvaluation, name: str) -> Iterator[str]:
    for verdict, reasons in (("given up", agent.given_up), ("unresolved", agent.unresolved)):
        for task, reason in list(reasons.items())[:LISTED]:
            yield f"{name} {verdict} {one_line(task, NAME_CELLS)}: {one_line(reason, REASON_CELLS)}"
        if len(reasons) > LISTED:
            yield f"{name} {verdict}: {len(reasons) - LISTED} more (JSON has all)"


def _pairs_text(pairs: PairedTallies) -> str:
    text = f"{len(pairs.gained)} gained, {len(pairs.lost)} lost on {fmt.count(pairs.first.n, 'task')}"
    if pairs.difference and pairs.difference.interval:
        low, high = map(fmt.points, pairs.difference.interval)
        text += f": {fmt.points(pairs.difference.mean)} points [{low}, {high}]"
    return text + (f"; exact McNemar {fmt.p_value(pairs.mcnemar_p)}" if pairs.mcnemar_p is not None else "")


# Replays


def render_replay(view: ReplayView) -> RenderableType:
    """Return how much of a replay came out the same, and what did not."""
    match view:
        case DecisionsReplay():
            return Text("\n".join(_decision_lines(view)))
        case RecordReplay():
            return Text("\n".join(_record_lines(view)))
        case LiveReplay():
            return _render_live(view)


def _decision_lines(view: DecisionsReplay) -> Iterator[str]:
    seconds = fmt.duration(view.seconds)
    if first := view.first:
        yield (
            f"event {first.seq}, action {first.action}: the run did: {_action_text(first.did)}; "
            f"the policy says now: {_action_text(first.says)}"
        )
        yield f"{view.differing} of {view.asked} decisions differ, the first is above; {seconds}"
    else:
        yield f"{fmt.count(view.asked, 'decision')}, all identical, {seconds}"


def _action_text(action: Action | TasksChanged | None) -> str:
    if action is None:
        return "nothing more"
    if isinstance(action, TasksChanged):
        return one_line(describe(action)[1], NAME_CELLS)
    if isinstance(action, Evaluate):
        attempt = f", attempt {action.attempt + 1}" if action.attempt else ""
        return f"evaluate agent {action.agent} on {one_line(action.task, NAME_CELLS)}{attempt}"
    parents = " and ".join(map(str, action.parents))
    operator = one_line(f"{action.operator}{':' if action.aim else ''}{action.aim}", NAME_CELLS)
    shown = f", shown actions {', '.join(map(str, action.evidence))}" if action.evidence else ""
    return f"expand agent {parents} by {operator}{shown}"


def _record_lines(view: RecordReplay) -> Iterator[str]:
    total = sum(view.counts.values())
    nouns = {
        "lineage": "step",
        "evaluations": "evaluation graded again",
        "work": "evaluation performed again",
    }
    noun, _, how = nouns[view.replay].partition(" ")
    things = f"{fmt.count(total, noun)} {how}".rstrip()
    for step in view.steps:
        if step.match is not Match.SAME:
            yield step_line(step)
    for done in view.evaluations:
        if done.match is not Match.SAME:
            yield evaluation_line(done)
    if view.identical:
        yield f"{things}, all identical, {fmt.duration(view.seconds)}"
    else:
        counts = ", ".join(
            f"{number} {_match_text(match)}" for match, number in view.counts.items() if number
        )
        yield f"{things}: {counts}; {fmt.duration(view.seconds)}"


def step_line(step: StepAgain) -> str:
    """Return one repeated step of a lineage on a line."""
    why = f"  {_divergence_text(step.divergence)}" if step.divergence else ""
    return f"agent {step.agent:<4} {step.commit[:12]}  {_match_text(step.match):<13} {fmt.duration(step.seconds)}{why}"


def evaluation_line(done: EvaluationReplay) -> str:
    """Return one repeated evaluation on a line."""
    recorded = f"{done.recorded.verdict}: {done.recorded.reason}"
    message = _divergence_text(done.divergence) if done.divergence else one_line(recorded, REASON_CELLS)
    task = one_line(done.task, NAME_CELLS)
    return f"{_match_text(done.match):<16} agent {done.agent:<4} {task}: {message}"


def _match_text(match: Match) -> str:
    return {Match.SAME: "identical", Match.DIFFERENT: "differs"}.get(match, match.value)


def _divergence_text(divergence: Divergence) -> str:
    return one_line(str(divergence), 2 * REASON_CELLS)


def _render_live(view: LiveReplay) -> RenderableType:
    model, pairs = one_line(view.live, NAME_CELLS), view.against_record
    parts: list[RenderableType] = [
        Text(f"{fmt.count(pairs.first.n, 'pair')} of agent and task; 95 % Wilson intervals"),
        _table([["recorded", fmt.tally_interval(pairs.first)], [model, fmt.tally_interval(pairs.second)]]),
        Text(_pairs_text(pairs)),
    ]
    for word, tasks in (("gained", pairs.gained), ("lost", pairs.lost)):
        if tasks:
            parts.append(Text(f"{word}: {', '.join(one_line(task, NAME_CELLS) for task in tasks)}"))
    if len(view.agents) > 1:
        parts.append(Text("pairs on the same task are not independent; agent by agent:"))
        parts.append(
            _table(
                [
                    f"agent {agent}",
                    f"{fmt.tally(alone.first)} → {fmt.tally(alone.second)}",
                    _pairs_text(alone),
                ]
                for agent, alone in view.agents.items()
            )
        )
    if view.live == "offline":
        parts.append(Text(f"note: {OFFLINE_NOTE}"))
    parts.append(Text(f"recorded in {one_line(view.folder, 500)}; {fmt.usage(view.spend)}"))
    return Group(*parts)


def _table(rows: Iterable[list[str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(cell) for cell in ["", *row]))
    return table
