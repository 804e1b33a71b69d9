"""A study of one head: its costs are measured on this machine, then each cluster is simulated."""

from collections.abc import Sequence
from pathlib import Path

from dgm.simulate.scale.cluster import ScaleSimulation
from dgm.simulate.scale.head_costs import measure_head
from dgm.simulate.scale.plan import ScalePlan, ScaleStudy


def study_scale(
    plans: Sequence[ScalePlan], policy: str = "lineage", head_speed: float = 1.0, folder: Path | None = None
) -> ScaleStudy:
    """Measure the head, and simulate each cluster; takes seconds.

    Args:
        plans: the clusters.
        policy: whose decisions are measured.
        head_speed: how many times as fast as this machine the head is.
        folder: in which runs are made: the log is measured on its disk; None: the folder of temporary files.

    Raises:
        UserError: there is no such policy.
    """
    costs = measure_head(policy, folder).sped_up(head_speed)
    return ScaleStudy(costs, [ScaleSimulation(plan, costs).perform() for plan in plans])
