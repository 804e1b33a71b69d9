"""An agent's patches as predictions in SWE-bench's format, of the search or of an evaluation."""

from contextlib import ExitStack
from pathlib import Path

from dgm.archive.run import Run
from dgm.domain import Agent, TaskId
from dgm.errors import UserError
from dgm.evaluation.predictions import export_patches
from dgm.evaluation.schedule import find_entered
from dgm.views.run import models_of

SWEBENCH = "swebench:"
IN_MIXED = "swebench-"
"""Prefix of the ids of SWE-bench's tasks in a mixed benchmark, before the slash."""


def write_predictions(
    run: Run, agent: Agent, file: Path, evaluation: str | None = None
) -> tuple[str, dict[str, int]]:
    """Write the patches of an agent's graded first attempts, all of them or nothing.

    Args:
        run: the agent's run.
        agent: the agent.
        file: a new ``.jsonl`` or ``.json`` file.
        evaluation: the name of an evaluation's folder in the run's, or its path; None: those of the search.

    Returns:
        ``model_name_or_path`` of the predictions, and the numbers of what was written and left out.

    Raises:
        UserError: there is no such evaluation or nothing to write, or it cannot be written there.
        ArchiveCorrupt: a patch is missing or damaged.
    """
    with ExitStack() as stack:
        source = stack.enter_context(_open_evaluation(run, evaluation)) if evaluation else run
        candidate = find_entered(source, agent.commit) if evaluation else agent.id
        if candidate is None:
            raise UserError(f"{source.folder}: agent {agent.id} was not evaluated there")
        model = f"dgm/{run.name}/{agent.id}+{models_of(source)['solve']}"
        parts = source.settings()["benchmark"].split("+")
        is_mixed = len(parts) > 1 and any(part.startswith(SWEBENCH) for part in parts)
        counts = export_patches(
            source, candidate, model, file, _inner_task if is_mixed else lambda task: task
        )
    return model, counts


def _open_evaluation(run: Run, name: str) -> Run:
    for folder in (run.folder / name, Path(name)):
        if (folder / "run.json").is_file():
            return Run.open(folder)
    known = ", ".join(sorted(path.parent.name for path in run.folder.glob("*/run.json")))
    raise UserError(f"no evaluation {name!r} (in {run.folder}: {known or 'none'})", argument="evaluation")


def _inner_task(task: TaskId) -> str | None:
    part, _, inner = task.partition("/")
    return inner if part.startswith(IN_MIXED) else None
