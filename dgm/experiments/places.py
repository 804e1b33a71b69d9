"""Paths in a sweep's file: they begin at the file's folder, and are found again from any other."""

from pathlib import Path

from dgm.benchmarks.opening import absolute, absolute_subset
from dgm.config import Settings


def with_places(settings: Settings, folder: Path) -> Settings:
    """Return the settings with benchmark, subset and seed agent as absolute paths, where they are paths.

    Args:
        settings: as they stand in a file.
        folder: that of the file.

    Raises:
        UserError: the benchmark's name is none.
    """
    set_here: dict[str, object] = {"benchmark": absolute(settings.benchmark, folder)}
    if settings.seed_agent is not None:
        place = folder / Path(settings.seed_agent).expanduser()
        set_here["seed_agent"] = str(place.resolve()) if place.exists() else settings.seed_agent
    swebench = settings.benchmarks.swebench
    if swebench.subset:
        swebench = swebench.model_copy(update={"subset": absolute_subset(swebench.subset, folder)})
        set_here["benchmarks"] = settings.benchmarks.model_copy(update={"swebench": swebench})
    return settings.model_copy(update=set_here)
