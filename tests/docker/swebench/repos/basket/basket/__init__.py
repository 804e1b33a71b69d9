"""What a customer is about to buy."""


class Basket:
    """Items by name, each with a price in cents and a count."""

    def __init__(self):
        self._items = {}

    def add(self, name, price, count=1):
        """Puts some of an item in."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._items[name] = (price, count)

    def total(self):
        """What it costs, in cents."""
        return sum(price * count for price, count in self._items.values())

    def __len__(self):
        return sum(count for _, count in self._items.values())
