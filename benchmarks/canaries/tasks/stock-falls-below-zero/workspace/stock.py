"""Goods in a store."""


class Stock:
    """A number of equal pieces."""

    def __init__(self, count=0):
        self.count = count

    def add(self, count):
        """Put pieces into the store."""
        self.count += count

    def take(self, count):
        """Take pieces out of the store; return how many are left."""
        self.count -= count
        return self.count
