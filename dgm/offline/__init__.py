"""The offline model: a rule-based program-repair engine that is driven by the conversation alone."""

from dgm.offline.model import OfflineModel, decide

__all__ = ["OfflineModel", "decide"]
