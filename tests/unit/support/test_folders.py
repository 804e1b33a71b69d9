"""Where tests stand."""

from pathlib import Path

TESTS = Path(__file__).parents[2]
ENGINES = ("docker", "e2e")
"""Folders in which ``make test-docker`` looks, as the Makefile names them."""


def test_what_needs_an_engine_stands_where_it_is_looked_for():
    own = Path(__file__)
    others = [path for path in TESTS.rglob("*.py") if path != own]
    marked = {path.relative_to(TESTS).parts[0] for path in others if "mark.docker" in path.read_text()}
    assert marked == set(ENGINES)
    makefile = (TESTS.parent / "Makefile").read_text()
    assert f"ENGINE_TESTS := {' '.join(f'tests/{folder}' for folder in reversed(ENGINES))}\n" in makefile
