class Account:
    def __init__(self):
        self._entered = None
        self.total = 0
        self.longest = 0

    def enter(self, gate):
        if self._entered is not None:
            raise ValueError("the car is on the road already")
        self._entered = self._gate(gate)

    def leave(self, gate):
        if self._entered is None:
            raise ValueError("the car is not on the road")
        ride = abs(self._gate(gate) - self._entered)
        self._entered = None
        price = 3 * ride + 2 if ride else 0
        self.total += price
        self.longest = max(self.longest, ride)
        return price

    @staticmethod
    def _gate(gate):
        if gate < 0:
            raise ValueError("there is no such gate")
        return gate
