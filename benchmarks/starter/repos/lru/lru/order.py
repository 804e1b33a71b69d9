"""A doubly linked list of keys, from the longest unused to the last used."""


class _Link:
    __slots__ = ("after", "before", "key")

    def __init__(self, key=None):
        self.key = key
        self.before = self.after = self


class Order:
    """Keys by last use; each operation takes the same time for any number of keys."""

    def __init__(self):
        self._ring = _Link()
        self._links = {}

    def __len__(self):
        return len(self._links)

    def __iter__(self):
        link = self._ring.after
        while link is not self._ring:
            yield link.key
            link = link.after

    def touch(self, key):
        """Make ``key`` the last used one, adding it if it is new."""
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = _Link(key)
        else:
            self._unlink(link)
        last = self._ring.before
        link.before, link.after = last, self._ring
        last.after = self._ring.before = link

    def discard(self, key):
        """Forget ``key`` if it is there."""
        link = self._links.pop(key, None)
        if link is not None:
            self._unlink(link)

    def oldest(self):
        """Return the longest unused key; raises ``LookupError`` if there is none."""
        if not self._links:
            raise LookupError("no keys")
        return self._ring.after.key

    @staticmethod
    def _unlink(link):
        link.before.after = link.after
        link.after.before = link.before
