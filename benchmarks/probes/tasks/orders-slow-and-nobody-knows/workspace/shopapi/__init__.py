"""The shop's interface for our programs."""

from .client import Client, Refused

__all__ = ["Client", "Refused"]
