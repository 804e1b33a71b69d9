"""Two agents side by side: what each solved of the tasks that both tried, and the change of the code."""

from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from dgm.archive.run import Run
from dgm.domain import AgentId, Verdict
from dgm.evaluation.exam import Comparison, compare_verdicts
from dgm.render import fmt, safe
from dgm.render.text import Facts
from dgm.tui.pane import Pane, TextView, patch_parts
from dgm.tui.reader import News
from dgm.views.agents import DiffView
from dgm.views.values import TallyView


class ComparePane(Pane):
    """The two marked agents."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "beside", "Side by side")]

    def __init__(self) -> None:
        super().__init__("4 Compare", id="compare")
        self._beside = False

    def compose(self) -> ComposeResult:
        yield TextView(id="comparison")

    def enter(self) -> None:
        marks = sorted(self.browser.marks)
        self.focus_content()
        if len(marks) < 2:
            what = f"agent {marks[0]} is marked; " if marks else ""
            self.run_worker(self.show_problem(f"{what}mark two agents with m, then press c"), group="load")
            return
        first, second = marks
        self.load("the comparison", lambda run: _compare(run, AgentId(first), AgentId(second)), self._show)

    def take(self, news: News) -> None:
        if any(row.agent in self.browser.marks for row in news.rows):
            self.enter()

    def action_beside(self) -> None:
        self._beside = not self._beside
        self.enter()

    async def _show(self, found: "tuple[Comparison, dict[str, list[str]], DiffView]") -> None:
        comparison, tasks, change = found
        parts = list(_comparison_parts(comparison, tasks, change, beside=self._beside))
        await self.query_one(TextView).show(parts, (change.base, change.agent, self._beside))


def _compare(run: Run, first: AgentId, second: AgentId) -> tuple[Comparison, dict[str, list[str]], DiffView]:
    tree = run.tree
    one, two = tree.verdicts(first), tree.verdicts(second)
    names = [task for task in dict.fromkeys((*tree.tasks, *one)) if task in one and task in two]
    graded = [task for task in names if one[task] is not None and two[task] is not None]
    comparison = compare_verdicts([(task, one[task], two[task]) for task in graded])
    same = {
        "both solved": [task for task in graded if one[task] is two[task] is Verdict.RESOLVED],
        "neither solved": [task for task in graded if one[task] is two[task] is not Verdict.RESOLVED],
    }
    tasks: dict[str, list[str]] = {
        f"only agent {second} solved": list(comparison.gained),
        f"only agent {first} solved": list(comparison.lost),
        **{title: [str(task) for task in which] for title, which in same.items()},
    }
    return comparison, tasks, DiffView.load(run, tree.agents[second], tree.agents[first])


def _comparison_parts(
    comparison: Comparison, tasks: dict[str, list[str]], change: DiffView, *, beside: bool
) -> "list[RenderableType]":
    facts = Facts()
    facts.add(f"agent {change.base}", fmt.tally_interval(TallyView.of(comparison.first)))
    facts.add(f"agent {change.agent}", fmt.tally_interval(TallyView.of(comparison.second)))
    facts.add("both tried", fmt.count(comparison.first.n, "task"))
    facts.add("exact McNemar", _conclusion(comparison))
    parts: list[RenderableType] = [
        Text(f"Agent {change.agent} against agent {change.base}", "bold"),
        facts.table,
        Text(),
    ]
    for title, names in tasks.items():
        parts.append(Text(f"{title}: {fmt.count(len(names), 'task')}", "bold"))
        parts += [Text(f"  {safe.one_line(name, 200)}") for name in names]
    return [*parts, Text(), *patch_parts(change.patch, beside=beside)]


def _conclusion(comparison: Comparison) -> str:
    if comparison.p < fmt.SIGNIFICANT:
        return f"{fmt.p_value(comparison.p)}: a difference, if the two were not chosen by these tasks"
    return f"{fmt.p_value(comparison.p)}: no difference shown"
