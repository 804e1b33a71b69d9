"""The plan of a search on the terminal."""

from rich.console import RenderableType
from rich.text import Text

from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.render.text import Facts
from dgm.views.plan import Basis, CostEstimate, PlanView, TestPlan

ENOUGH = 20
"""Number of the seed's tasks from which all or none resolved is more than chance."""
_BASIS = {
    Basis.SAME: "with this model on this suite",
    Basis.OTHER_MODEL: "of other models on this suite, at this model's price",
    Basis.OTHER_SUITE: "of this model on other suites",
}


def render_plan(view: PlanView) -> RenderableType:
    """Return what the budget buys, whether the seed leaves room, and what the tasks can show."""
    facts = Facts()
    active = "" if view.active_tasks == view.search_tasks else f"{view.active_tasks} at first of "
    facts.add(
        "plan",
        f"{one_line(view.model, 80)} on {one_line(view.benchmark, 80)} ({active}{view.search_tasks} search tasks)",
    )
    bound = "" if view.evaluation_at_most_usd == 0 else f"; at most {fmt.money(view.evaluation_at_most_usd)}"
    facts.add("evaluation", f"{_cost(view.evaluation, 'evaluation')}{bound}")
    facts.add("child", _cost(view.expansion, "expansion"))
    facts.add("budget", _budget(view))
    facts.add("seed", *_seed(view))
    facts.add("noise", _noise(view))
    facts.add("promotion", _test(view.promotion, "the first promotion round"))
    facts.add("holdout", _test(view.holdout, "the holdout report"))
    return facts.table


def _cost(cost: CostEstimate | None, action: str) -> str:
    if cost is None:
        return f"no earlier {action} tells the cost; it is reported after the first ones"
    price = fmt.count(round(cost.tokens), "token")
    if cost.usd:
        low, high = (fmt.money(usd).removesuffix(" USD") for usd in cost.usd_range)
        price = f"{fmt.money(cost.usd)} ({low} to {high})"
    return f"about {price}, {fmt.duration(cost.seconds)} (mean of {cost.actions:,} {_BASIS[cost.basis]})"


def _budget(view: PlanView) -> str:
    if view.evaluations is None:
        limit = "no limit" if view.budget_usd is None else fmt.money(view.budget_usd)
        return f"{limit}; the number of evaluations is not known yet"
    children = "" if view.children is None else f" and about {fmt.count(view.children, 'child', 'children')}"
    if view.limited_by == "usd" and view.budget_usd is not None:
        text = (
            f"{fmt.money(view.budget_usd)} buys about {fmt.count(view.evaluations, 'evaluation')}{children}"
        )
    else:
        cost = f", about {fmt.money(view.usd)}" if view.usd else ""
        text = f"{fmt.count(view.evaluations, 'evaluation')}{children}{cost}"
    if view.seconds is None:
        return text
    return f"{text} in about {fmt.duration(view.seconds)} with {fmt.count(view.workers, 'worker')}"


def _seed(view: PlanView) -> tuple[str | Text, str]:
    if view.seed is None:
        return "not evaluated here before, so its room to improve is not known", ""
    text = f"resolved {fmt.tally_interval(view.seed)} of the search tasks in earlier runs"
    if view.seed.n >= min(view.search_tasks, ENOUGH) and view.seed.resolved in (0, view.seed.n):
        all_or_none = (
            "all of them: nothing is left to improve" if view.seed.resolved else "none: gains are hard to see"
        )
        return f"{text}, {all_or_none}; choose other tasks", "yellow"
    return text, ""


def _noise(view: PlanView) -> str:
    if view.noise is None:
        return "unknown; to measure it: dgm evaluate AGENT --benchmark SUITE --split search --attempts 2"
    noise = view.noise
    return (
        f"{noise.differing:,} of {noise.pairs:,} pairs of the seed's attempts at one task differ, so the pass rates of "
        f"two identical runs differ by about {100 * noise.rate_spread:.0f} points"
    )


def _test(test: TestPlan | None, name: str) -> str:
    if test is None:
        return "no tasks" + ("" if name.startswith("the first") else ": no report can show a gain")
    tasks = fmt.count(test.tasks, "task")
    assumed = f"if {test.lost:.0%} of tasks are lost by chance"
    if test.smallest_gain is None:
        return f"{tasks} are too few: {name} shows no gain with 80% power ({assumed})"
    more = f"; {test.tasks_for_half:,} tasks would show half of it" if test.tasks_for_half else ""
    return f"{tasks}: {name} shows a gain from {100 * test.smallest_gain:.0f} points on with 80% power, {assumed}{more}"
