"""Evolve coding agents: a growing archive of agents that edit their own source.

Importing ``dgm`` does no work; the public names (``dgm.public``) are imported when the first of them is asked for.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    from importlib import import_module
    from importlib.util import find_spec

    if not name.startswith("_"):
        # Modules first: the public names import nearly all of them. A folder that only holds old bytecode is none.
        spec = find_spec(f"dgm.{name}")
        if spec and spec.origin:
            return import_module(f"dgm.{name}")
        public = import_module("dgm.public")
        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'dgm' has no attribute {name!r}")


def __dir__() -> list[str]:
    from importlib import import_module

    return sorted(name for name in dir(import_module("dgm.public")) if not name.startswith("_"))
