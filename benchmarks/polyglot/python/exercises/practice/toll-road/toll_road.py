class Account:
    def __init__(self):
        pass

    def enter(self, gate):
        pass

    def leave(self, gate):
        pass

    @property
    def total(self):
        pass

    @property
    def longest(self):
        pass
