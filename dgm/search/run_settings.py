"""The settings of a run at any moment: those frozen in ``run.json``, and the later changes."""

from collections.abc import Iterable, Mapping, Sequence

from dgm.archive.finding import unpacked_copies_folder
from dgm.archive.run import Run
from dgm.config import Settings, read_frozen
from dgm.consents import ConsentNeeded
from dgm.domain import ActionId
from dgm.gateway.model_names import DEFAULT
from dgm.models.providers import without_addresses
from dgm.models.reach import list_unagreed

NATIVE_NAMES = "native_model_names"
"""Key of ``run.json`` where agents are told their model's own name. Older runs tell them ``default``."""


def fixed_name_of(run: Run) -> str:
    """Return the name that a run tells its agents in place of their model's own; empty if none."""
    return "" if run.config.get(NATIVE_NAMES) else DEFAULT


def settings_of(run: Run, until: int | None = None) -> Settings:
    """Return the settings of a run; for a packed run, without the addresses of its maker's models.

    A stranger's address cannot be trusted, nor the name of the variable whose value would be sent there.

    Args:
        run: the run.
        until: number of the last event whose changes count; None for all that the run's tree has read.
    """
    settings = read_frozen(run.settings(until), str(run.folder / "run.json"))
    if not run.folder.resolve().is_relative_to(unpacked_copies_folder().resolve()):
        return settings
    return without_addresses(settings)


def require_consent(run: Run, settings: Settings) -> None:
    """Make sure that this user has agreed to where a run would send keys, and to the prices that it counts with.

    Whoever made the run on this machine has. Values that this user chose now, instead of the run's, need no consent.

    Args:
        run: whose settings are used.
        settings: those that are about to be used.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names an address, a variable or a price of its own.
    """
    unagreed = list_unagreed(settings, settings_of(run))
    if unagreed:
        words = "; ".join(one.words for one in unagreed)
        raise ConsentNeeded(
            f"{run.name}: was not made by you on this machine, and would use its own {words}",
            f"{run.name} was not made by you on this machine. Use its {words}",
            unagreed,
        )


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
