"""The offline model: a program that repairs code by rules, driven by the conversation alone."""

from dgm.offline.model import OfflineModel, decide

__all__ = ["OfflineModel", "decide"]
