"""A run, or an agent of it, in forms that other programs read."""

from pathlib import Path

from dgm.archive.finding import SUFFIX, find_run, locate_run
from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.exports.targets import Content, Exported, choose_content, export_content, unpack_to


def export(
    run: str | Path,
    agent: str | int | Path | None = None,
    target: str | Path | None = None,
    *,
    what: str | None = None,
    evaluation: str | None = None,
    force_agents: bool = False,
) -> Exported:
    """Write a run, or an agent of it, to TARGET, for other programs.

    The ending of TARGET decides: .dgm packs the run to share it; .csv and .parquet hold evaluations or spend; .graphml
    the genealogy; .jsonl an agent's predictions for SWE-bench; .patch its changes for git am. A folder gets an agent's
    source with its history, or the unpacked run of a .dgm. Nothing is overwritten.

    Args:
        run: Name, folder or .dgm file of the run.
        agent: Id, best, seed or the start of a commit [default: best].
        target: New file, or new folder (with a / at its end).
        what: source, run, trajectories (folders), evaluations or spend (tables) [default: what TARGET is named].
        evaluation: Take the predictions of this evaluation: its name in RUN, or its path.
        force_agents: Pack agents even if their source has personal paths or what looks like a key.

    Raises:
        UserError: the target exists or cannot be written, or the run does not have the part.
        ArchiveCorrupt: something in the run, or the packed file, is damaged.
    """
    name = None if target is None else agent
    path = agent if target is None else target
    if path is None or isinstance(path, int):
        raise UserError("name the new file or folder, for example best/ or spend.csv")
    file = locate_run(str(run))
    unpacks = file.is_file() and name is None
    content = choose_content(str(path), what, Content.RUN if unpacks else None)
    if unpacks and content is Content.RUN and Path(path).suffix != SUFFIX:
        return unpack_to(file, Path(path))
    with Run.open(find_run(str(run))) as opened:
        return export_content(
            opened,
            content,
            Path(path),
            agent=None if name is None else str(name),
            evaluation=evaluation,
            force_agents=force_agents,
        )
