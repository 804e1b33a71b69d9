"""The order in which several processes take modules of tests: some mostly wait, others keep a processor busy."""

from collections.abc import Iterable, Sequence
from pathlib import Path

WAITING, BUSY = "tui", "e2e"
"""Folders: the screens wait for what is drawn by a timer; searches use whatever the machine has."""


def mix_modules(modules: Iterable[Path], tests: Path) -> list[Path]:
    """Return the modules, those of ``WAITING`` at even distances between those of ``BUSY`` and all else as it was."""
    parts: dict[str, list[Path]] = {}
    for module in modules:
        own = module.is_relative_to(tests)
        parts.setdefault(module.relative_to(tests).parts[0] if own else "", []).append(module)
    if WAITING in parts and BUSY in parts:
        parts[BUSY] = _spread(parts[BUSY], parts.pop(WAITING))
    return [module for part in parts.values() for module in part]


def _spread(one: Sequence[Path], other: Sequence[Path]) -> list[Path]:
    placed = [((n + 0.5) / len(part), module) for part in (one, other) for n, module in enumerate(part)]
    return [module for _, module in sorted(placed, key=lambda each: each[0])]
