"""The solid seed's package, imported for one test and forgotten afterwards: an agent is no part of dgm."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SOLID = Path(__file__).parents[3] / "archive" / "seeds" / "solid"
PARTS = (
    "changes",
    "editing",
    "loop",
    "memory",
    "model",
    "native_format",
    "prompts",
    "shell",
    "text_format",
    "tools",
)


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "agent"]:
        del sys.modules[name]


@pytest.fixture
def solid(monkeypatch, tmp_path):
    """All modules of the solid seed by name; what they write is below ``tmp_path``."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.syspath_prepend(str(SOLID))
    forget()
    yield SimpleNamespace(**{name: importlib.import_module(f"agent.{name}") for name in PARTS})
    forget()


@pytest.fixture
def module_of(monkeypatch):
    """Import a module of a shipped design: ``module_of("team", "team")``; one design for a test."""

    def load(seed, name):
        monkeypatch.syspath_prepend(str(SOLID.parent / seed))
        forget()
        return importlib.import_module(f"agent.{name}")

    yield load
    forget()


@pytest.fixture
def repository(tmp_path):
    """A repository with one file."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_text("def f(x):\n    return x + 1\n")
    return folder


@pytest.fixture
def toolbox(solid, repository):
    """The agent's tools in that repository."""
    box = solid.tools.Toolbox(str(repository))
    yield box
    box.close()
