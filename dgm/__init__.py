"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are imported when they are first asked for; importing ``dgm`` itself does no work.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm import replay
    from dgm.api.runs import runs
    from dgm.api.search import (
        Budget,
        Evolution,
        EvolveArguments,
        ResumeArguments,
        evolve,
        evolve_async,
        open,  # noqa: A004  (as gzip.open)
    )

__version__ = "0.1.0"
__all__ = [
    "Budget",
    "Evolution",
    "EvolveArguments",
    "ResumeArguments",
    "__version__",
    "evolve",
    "evolve_async",
    "open",
    "replay",
    "runs",
]

_PLACES = {
    "search": ("Budget", "Evolution", "EvolveArguments", "ResumeArguments", "evolve", "evolve_async", "open"),
    "runs": ("runs",),
}
"""Modules of ``dgm.api`` and the public names in them."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "replay":
        return import_module("dgm.replay")
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"dgm.api.{module}"), name)
    raise AttributeError(f"module 'dgm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
