"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are imported when they are first asked for; importing ``dgm`` itself does no work.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm import replay
    from dgm.api import (
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
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "replay":
        return import_module("dgm.replay")
    if name in __all__:
        return getattr(import_module("dgm.api"), name)
    raise AttributeError(f"module 'dgm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
