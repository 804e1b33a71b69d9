"""Simulations of one head and many machines, from a program (``dgm simulate --nodes``)."""

from collections.abc import Sequence

from dgm.blocking import in_python
from dgm.errors import UserError
from dgm.publish.finding import archive_folders
from dgm.simulate.scale.plan import HeadCosts, ScalePlan, ScaleResult, ScaleStudy
from dgm.simulate.scale.studying import study_scale

__all__ = ["HeadCosts", "ScalePlan", "ScaleResult", "ScaleStudy", "simulate_nodes"]


def simulate_nodes(
    plans: ScalePlan | Sequence[ScalePlan], *, policy: str = "lineage", head_speed: float = 1.0
) -> ScaleStudy:
    """Simulate one head and many nodes on virtual time; what the head takes is measured on this machine; blocks.

    Args:
        plans: one or more clusters: ``dgm.ScalePlan(nodes=64, slots=32)``.
        policy: whose decisions are measured.
        head_speed: how many times as fast as this machine the head is; above 0.

    Raises:
        UserError: there is no such policy, or a number makes no sense.
    """
    with in_python():
        given = [plans] if isinstance(plans, ScalePlan) else list(plans)
        if not given or not head_speed > 0:
            raise UserError("simulate_nodes: give at least one plan, and a head_speed above 0")
        folder = next((each for each in archive_folders() if each.is_dir()), None)
        return study_scale(given, policy, head_speed, folder)
