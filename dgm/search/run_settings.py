"""The settings of a run at any moment: those frozen in ``run.json``, and the later changes."""

from collections.abc import Iterable, Mapping, Sequence

from dgm.archive.run import Run
from dgm.config import Settings, restore_old_defaults, validate_settings
from dgm.domain import ActionId
from dgm.models.providers import without_addresses
from dgm.publish.finding import unpacked_copies_folder


def settings_of(run: Run, until: int | None = None) -> Settings:
    """Return the settings of a run; for a packed run, without the addresses of its maker's models.

    A stranger's address cannot be trusted, nor the name of the variable whose value would be sent there.

    Args:
        run: the run.
        until: number of the last event whose changes count; None for all that the run's tree has read.
    """
    settings = validate_settings(
        restore_old_defaults(run.settings(until)), {"": str(run.folder / "run.json")}
    )
    if not run.folder.resolve().is_relative_to(unpacked_copies_folder().resolve()):
        return settings
    return settings.model_copy(update={"models": without_addresses(settings.models)})


def group_by_settings(run: Run, actions: Iterable[ActionId]) -> Sequence[tuple[int, Sequence[ActionId]]]:
    """Group actions by the settings that they were performed with.

    Returns:
        For each group the number of an event at which its settings held, and its actions in the order given.
        There is one group if the settings were never changed.
    """
    if not run.tree.changes:
        return [(run.tree.seq, list(actions))]
    groups: dict[int, list[ActionId]] = {}
    for action in actions:
        starts = run.store.starts_of_action(action)
        # The last change before the last start; 0: before all of them.
        change = max((seq for seq, _ in run.tree.changes if starts and seq < starts[-1][0]), default=0)
        groups.setdefault(change, []).append(action)
    return sorted(groups.items())


def current_settings_at(run: Run, until: int) -> Settings:
    """Return the settings at event ``until``, with the present place of the benchmark."""
    place: Mapping[str, str] = {"benchmark": run.settings()["benchmark"]}
    return settings_of(run, until).model_copy(update=place)
