"""The settings of a live replay, from what a person names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm import replay
from dgm.api.watcher import Watcher
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.models.auto import settle_auto
from dgm.models.choose import AUTO


def choose_live_settings(
    run: Run,
    model: str,
    benchmark: str | None,
    assignments: Sequence[str],
    own: Mapping[str, Any],
    watcher: Watcher,
) -> Settings:
    """Return the run's settings with another model for all roles.

    Args:
        run: open to read.
        model: its name, or ``auto``.
        benchmark: another one than the run's, by its name or its path.
        assignments: as ``--set`` takes them.
        own: further settings by name; None values are ignored.
        watcher: is asked about a model that costs money.

    Raises:
        UserError: a setting is unknown or does not fit, or there is no such model.
    """
    if benchmark and Path(benchmark).is_dir() and len(Path(benchmark).parts) > 1:
        benchmark = str(Path(benchmark).resolve())
    settings = replay.live_settings(run, model, benchmark, assignments)
    settings = settings.model_copy(update={key: value for key, value in own.items() if value is not None})
    if settings.model == AUTO:
        settings, why = settle_auto(settings, watcher.may_use)
        watcher.model_chosen(why)
    return settings
