"""Two agents side by side: what each solved of the tasks that both tried, and the change of the code."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from dgm.archive.run import Run
from dgm.domain import AgentId, Verdict
from dgm.errors import DgmError
from dgm.evaluation.schedule import Comparison, compare_verdicts
from dgm.render import fmt, safe
from dgm.render.text import Facts
from dgm.tui.pane import Pane, TextView, patch_parts
from dgm.tui.reader import News
from dgm.views.agents import DiffView
from dgm.views.values import SIGNIFICANT, TallyView

Groups = Mapping[str, Sequence[str]]
"""Title → tasks."""


class ComparePane(Pane):
    """The two marked agents."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "beside", "Side by side")]

    def __init__(self) -> None:
        super().__init__("4 Compare", id="compare")
        self._beside = False
        self._pair = AgentId(0), AgentId(0)

    def compose(self) -> ComposeResult:
        yield TextView(id="comparison")

    def enter(self) -> None:
        self.focus_content()
        marks = [AgentId(agent) for agent in sorted(self.browser.marks)]
        if len(marks) == 2:
            self._pair = marks[0], marks[1]
            self.load("the comparison", lambda run: _compare(run, *marks), self._show)
        else:
            marked = f"agent {marks[0]} is marked; " if marks else ""
            self.run_worker(self.show_problem(f"{marked}mark two agents with m, then press c"))

    def take(self, news: News) -> None:
        if any(row.agent in self.browser.marks for row in news.rows):
            self.enter()

    def action_beside(self) -> None:
        self._beside = not self._beside
        self.enter()

    async def _show(self, answer: tuple[Comparison, Groups, DiffView | DgmError]) -> None:
        comparison, groups, change = answer
        parts = list(_verdict_parts(comparison, groups, *self._pair))
        if isinstance(change, DiffView):
            parts += patch_parts(change.patch, beside=self._beside)
        else:
            parts.append(Text(f"the code cannot be read: {safe.one_line(str(change), 500)}", "yellow"))
        await self.query_one(TextView).show(parts, (self._pair, self._beside))


def _compare(run: Run, first: AgentId, second: AgentId) -> tuple[Comparison, Groups, DiffView | DgmError]:
    tree = run.tree
    one, two = tree.verdicts(first), tree.verdicts(second)
    tasks = [task for task in dict.fromkeys((*tree.tasks, *one)) if one.get(task) and two.get(task)]
    comparison = compare_verdicts([(task, one[task], two[task]) for task in tasks])
    solved = {task: (one[task] is Verdict.RESOLVED, two[task] is Verdict.RESOLVED) for task in tasks}
    groups = {
        f"only agent {second} solved": comparison.gained,
        f"only agent {first} solved": comparison.lost,
        "both solved": [task for task in tasks if all(solved[task])],
        "neither solved": [task for task in tasks if not any(solved[task])],
    }
    try:
        return comparison, groups, DiffView.load(run, tree.agents[second], tree.agents[first])
    except DgmError as error:
        return comparison, groups, error


def _verdict_parts(
    comparison: Comparison, groups: Groups, first: AgentId, second: AgentId
) -> Iterator[RenderableType]:
    different = comparison.p < SIGNIFICANT
    conclusion = (
        "a difference, if the two were not chosen by these tasks" if different else "no difference shown"
    )
    yield Text(f"Agent {second} against agent {first}", "bold")
    if not comparison.first.n:
        yield Text("They have tried no task in common.")
        yield Text()
        return
    facts = Facts()
    facts.add(f"agent {first}", fmt.tally_interval(TallyView.of(comparison.first)))
    facts.add(f"agent {second}", fmt.tally_interval(TallyView.of(comparison.second)))
    facts.add("both tried", fmt.count(comparison.first.n, "task"))
    facts.add("exact McNemar", f"{fmt.p_value(comparison.p)}: {conclusion}")
    yield facts.table
    for title, tasks in groups.items():
        yield Text(f"{title}: {fmt.count(len(tasks), 'task')}", "bold")
        yield from (Text(f"  {safe.one_line(task, 200)}") for task in tasks)
    yield Text()
