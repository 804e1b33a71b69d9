"""The agent that a run recommended at each moment: its own policy is asked again about the tree of that moment.

The curve of a report follows the highest lower bound, which is cheap for any log. Runs of different policies are
compared by the agents that each policy would have recommended.
"""

from collections.abc import Sequence

from dgm.analysis.best import best_in
from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Verdict
from dgm.report.curve import CurvePoint
from dgm.stats import lower_bound

MOST = 300
"""Maximum number of moments; a recommendation takes some milliseconds where there are many agents."""


def recommendations(run: Run, most: int = MOST) -> Sequence[CurvePoint]:
    """Return the recommended agent after each evaluation, or after every n-th where there are more than ``most``.

    The last point is the run as far as its tree has read the log. The result is empty where there is no verdict
    yet. A
    verdict that was withdrawn later counts until then, as it did for the search.
    """
    every = -(-run.tree.evaluations // most) or 1
    tree, points, graded = Tree(), list[CurvePoint](), 0
    for recorded in run.store.read(0, run.tree.seq):
        tree.apply(recorded)
        event = recorded.event
        if isinstance(event, TaskGraded) and event.outcome.verdict is not Verdict.INVALID:
            graded += 1
            if graded % every == 0:
                points.append(_point(run, tree, points))
    if graded:
        points.append(_point(run, tree, points))
    return points


def _point(run: Run, tree: Tree, before: Sequence[CurvePoint]) -> CurvePoint:
    best = best_in(run, tree)
    own = tree.own(best)
    # A withdrawn verdict takes an evaluation away; a curve goes on from left to right.
    evaluations = max(tree.evaluations, before[-1].evaluations if before else 0)
    return CurvePoint(
        evaluations, tree.spend.usd, tree.spend.tokens, tree.wall_seconds, best, own.rate, lower_bound(own)
    )
