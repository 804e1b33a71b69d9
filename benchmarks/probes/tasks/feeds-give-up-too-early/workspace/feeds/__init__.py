"""Read the feeds of our partners."""

from .client import FeedError, fetch

__all__ = ["FeedError", "fetch"]
