"""Settings of a user, with the tokens of the accounts."""

from .store import load, save

__all__ = ["load", "save"]
