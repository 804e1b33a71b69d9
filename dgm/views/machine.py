"""This machine as a user sees it: its checks, settings, images, and the agents that were made or checked here."""

from collections.abc import Mapping
from pathlib import Path

from dgm.config.listing import ListedSetting, Variable
from dgm.views.values import View


class CheckRow(View):
    """One check of the machine."""

    check: str
    """Its name; checks of one thing begin alike, as in ``bubblewrap: confined``."""
    ok: bool
    required: bool = False
    """Whether no search can run without it."""
    detail: str
    """The observation; where it is not ok, what to do."""


class MachineView(View):
    """The checks of this machine."""

    ok: bool
    """Whether a search can run here, and the named model answers."""
    checks: tuple[CheckRow, ...]
    model: str | None = None
    """The model that was asked."""

    @property
    def exit_code(self) -> int:
        """0 if a search can run."""
        return 0 if self.ok else 1


class SettingsView(View):
    """Settings and environment variables."""

    settings: tuple[ListedSetting, ...]
    variables: tuple[Variable, ...]
    sections: Mapping[str, str]
    """Section of a setting's name → its meaning."""


class ImagesView(View):
    """Sandbox images."""

    images: Mapping[str, str]
    """Recipe → tag of its image."""


class CleanedRun(View):
    """What was freed of one run."""

    run: str
    folder: Path
    bytes: int
    kept: tuple[str, ...] = ()
    """Files in the folder of a removed run that are not dgm's, and stay."""
    skipped: str = ""
    """Why nothing of it was freed."""


class CleaningView(View):
    """What was freed."""

    bytes: int
    """On disk, without images."""
    runs: tuple[CleanedRun, ...]
    images: int = 0
    """Removed images."""
    sandboxes: int = 0
    """Removed sandboxes of dead processes."""
    failed: tuple[str, ...] = ()
    """What could not be removed, and why."""

    @property
    def exit_code(self) -> int:
        """1 if something could not be removed."""
        return 1 if self.failed else 0
