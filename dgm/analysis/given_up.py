"""The old name of ``count_abandoned``."""

from dgm.analysis.best import count_abandoned as count_given_up

__all__ = ["count_given_up"]
