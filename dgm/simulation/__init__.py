"""Worlds that cost nothing, and trials of policies in them, by the same loop that performs real searches."""

from dgm.archive.run import Run, RunKind
from dgm.errors import Hint, UserError


def check_performed(run: Run) -> None:
    """Refuse a simulated run: its agents cannot work, and no benchmark can grade them.

    Raises:
        UserError: the run is simulated.
    """
    if run.kind is RunKind.SIMULATION:
        raise UserError(
            f"{run.name} is simulated: no agent of it can work, and it has no benchmark to evaluate on",
            hint=Hint("to repeat its decisions", "replay", (str(run.folder),)),
        )
