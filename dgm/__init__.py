"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are re-exported lazily by the modules that own them; importing ``dgm`` itself does no work.
"""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The public modules, imported when they are first asked for."""
    if name == "replay":
        from importlib import import_module

        return import_module("dgm.replay")
    raise AttributeError(f"module 'dgm' has no attribute {name!r}")
