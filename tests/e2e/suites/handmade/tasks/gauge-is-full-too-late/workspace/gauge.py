class Gauge:
    """How much of something there is, up to a limit."""

    def __init__(self, limit):
        self.limit = limit
        self.level = 0

    def fill(self, amount):
        self.level = min(self.limit, self.level + amount)

    def room(self):
        return self.limit - self.level

    def is_full(self):
        return self.level > self.limit
