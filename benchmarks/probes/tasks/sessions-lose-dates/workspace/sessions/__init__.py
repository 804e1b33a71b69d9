"""Sessions of visitors, which outlive a restart of the server."""

from .store import load, save

__all__ = ["load", "save"]
