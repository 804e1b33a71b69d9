"""Accounts of the people who use our forum."""

from .store import Accounts, WrongPassword

__all__ = ["Accounts", "WrongPassword"]
