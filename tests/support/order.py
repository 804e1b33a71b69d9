"""The order in which several processes take modules of tests.

Some mostly wait, others keep a processor busy. Long ones at the end would leave one process alone.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

WAITING, BUSY = "tui", "e2e"
"""Folders: the screens wait for what is drawn by a timer; searches use whatever the machine has."""

LONG = ("docker/test_without_proc.py", "docker/test_task_images.py", "docker/test_starter_suite.py")
"""Modules of more than a minute whose names would put them at the end of all that need an engine."""


def mix_modules(modules: Iterable[Path], tests: Path) -> list[Path]:
    """Return the modules in the order in which they are taken.

    ``LONG`` ones come first, those of ``WAITING`` at even distances between those of ``BUSY``, and all else as it was.
    """
    given = list(modules)
    first = [module for name in LONG if (module := tests / name) in given]
    parts: dict[str, list[Path]] = {}
    for module in (module for module in given if module not in first):
        own = module.is_relative_to(tests)
        parts.setdefault(module.relative_to(tests).parts[0] if own else "", []).append(module)
    if WAITING in parts and BUSY in parts:
        parts[BUSY] = _spread(parts[BUSY], parts.pop(WAITING))
    return [*first, *(module for part in parts.values() for module in part)]


def _spread(one: Sequence[Path], other: Sequence[Path]) -> list[Path]:
    placed = [((n + 0.5) / len(part), module) for part in (one, other) for n, module in enumerate(part)]
    return [module for _, module in sorted(placed, key=lambda each: each[0])]
