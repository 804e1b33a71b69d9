"""Runs that the browser is tried on."""

from pathlib import Path

import pytest

from dgm.archive.unpacking import unpack
from dgm.tui import reader

EXAMPLE = Path(__file__).parents[2] / "archive" / "example" / "example.dgm"


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped run; to be read only."""
    folder = tmp_path_factory.mktemp("runs") / "first-search"
    unpack(EXAMPLE, folder)
    return folder


@pytest.fixture(autouse=True)
def _best_is_never_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """One search for the best agent that a busy machine held up would put off the next for longer than tests wait."""
    monkeypatch.setattr(reader, "BEST_EVERY", 0)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
