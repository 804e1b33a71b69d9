"""Runs that the browser is tried on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.archive.packed import unpack
from dgm.archive.run import Run
from dgm.tui import app

EXAMPLE = Path(__file__).parents[2] / "archive" / "example" / "example.dgm"


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped run; to be read only."""
    folder = tmp_path_factory.mktemp("runs") / "first-search"
    unpack(EXAMPLE, folder)
    return folder


@pytest.fixture
def example_copy(example: Path, tmp_path: Path) -> Path:
    """The shipped run, to be damaged."""
    return Path(shutil.copytree(example, tmp_path / "first-search"))


@pytest.fixture(scope="session")
def opened(example: Path) -> Iterator[Run]:
    """The shipped run as the program reads it: what the screens are compared with."""
    with Run.open(example) as run:
        yield run


@pytest.fixture(autouse=True)
def _never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LOOK_S", 0.02)
    monkeypatch.setattr(app, "BEST_SHARE", 0)
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
