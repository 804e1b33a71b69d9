"""The cache itself.

Entries leave it in three ways: removed by the user, expired (found to be too old when asked for, or by
``purge``), or evicted (the longest unused ones, when the weights add up to more than the capacity).
"""

import logging
import time

from .order import Order
from .stats import Stats

log = logging.getLogger(__name__)

MISSING = object()


class _Entry:
    __slots__ = ("expires", "tags", "value", "weight")

    def __init__(self, value, weight, expires, tags):
        self.value = value
        self.weight = weight
        self.expires = expires
        self.tags = tags


def _namespace(key):
    """Return the part of the key before the first colon, or nothing."""
    space, colon, _ = key.partition(":")
    return [space] if colon else []


class Cache:
    """Up to ``capacity`` of weight; an entry weighs 1 unless ``weigh(value)`` says otherwise.

    ``ttl`` is the time to live in seconds of entries that do not bring their own; None means for ever.
    ``on_evict(key, value)`` is called for evicted entries only.
    """

    def __init__(self, capacity, ttl=None, clock=time.monotonic, weigh=None, on_evict=None):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.ttl = ttl
        self.stats = Stats()
        self._clock = clock
        self._weigh = weigh or (lambda value: 1)
        self._on_evict = on_evict
        self._entries = {}
        self._order = Order()
        self._weight = 0

    # -- looking

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        """Tell whether a fresh entry is there, without counting as a use."""
        entry = self._entries.get(key)
        return entry is not None and not self._is_stale(entry)

    @property
    def weight(self):
        """The weights of all entries together."""
        return self._weight

    def keys(self):
        """Return the keys from the longest unused to the last used."""
        return list(self._order)

    def _is_stale(self, entry):
        return entry.expires is not None and self._clock() >= entry.expires

    def _find(self, key):
        """Return the fresh entry of ``key``, or None; counts, and drops a stale one."""
        entry = self._entries.get(key)
        if entry is not None and self._is_stale(entry):
            self._remove(key)
            self.stats.expired += 1
            log.debug("expired %s", key)
            entry = None
        if entry is None:
            self.stats.misses += 1
            log.debug("miss %s", key)
            return None
        self.stats.hits += 1
        self._order.touch(key)
        log.debug("hit %s", key)
        return entry

    def get(self, key, default=None):
        """Return the value of ``key`` and make it the last used one, or return ``default``."""
        entry = self._find(key)
        return default if entry is None else entry.value

    def peek(self, key, default=None):
        """Return the value of ``key`` without counting as a use."""
        return self._entries[key].value if key in self else default

    def get_or_load(self, key, load, ttl=None):
        """Return the value of ``key``; if it is missing, put ``load(key)`` there first."""
        value = self.get(key, MISSING)
        if value is MISSING:
            value = load(key)
            self.put(key, value, ttl)
        return value

    def remaining(self, key):
        """Return the seconds that an entry has left, None if it never expires; 0 if it is not there."""
        if key not in self:
            return 0
        expires = self._entries[key].expires
        return None if expires is None else expires - self._clock()

    # -- filling

    def put(self, key, value, ttl=None, tags=()):
        """Add or replace an entry, evicting others if there is no room.

        A time to live of 0 makes an entry that is never found. An entry that weighs more than the capacity
        is not kept.
        """
        self._store(key, value, ttl, {*tags, *_namespace(key)})
        self._make_room()

    def put_many(self, items, ttl=None, tags=()):
        """Add or replace entries from a mapping, evicting only when all are in."""
        for key, value in items.items():
            self._store(key, value, ttl, {*tags, *_namespace(key)})
        self._make_room()

    def _store(self, key, value, ttl, tags):
        weight = self._weigh(value)
        self._remove(key)
        if weight > self.capacity:
            log.info("%s is too heavy: %d", key, weight)
            return
        if ttl is None:
            ttl = self.ttl
        expires = None if ttl is None else self._clock() + ttl
        self._entries[key] = _Entry(value, weight, expires, tags)
        self._order.touch(key)
        self._weight += weight
        log.debug("put %s (weight %d, tags %s)", key, weight, sorted(tags))

    def _make_room(self):
        while self._weight > self.capacity:
            key = self._order.oldest()
            value = self._remove(key).value
            self.stats.evicted += 1
            log.debug("evict %s", key)
            if self._on_evict is not None:
                self._on_evict(key, value)

    # -- emptying

    def _remove(self, key):
        """Take an entry out and return it, or None."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._order.discard(key)
            self._weight -= entry.weight
        return entry

    def drop(self, key):
        """Remove an entry; tell whether there was one."""
        return self._remove(key) is not None

    def purge(self):
        """Remove all stale entries; return how many there were."""
        stale = [key for key, entry in self._entries.items() if self._is_stale(entry)]
        for key in stale:
            self._remove(key)
        self.stats.expired += len(stale)
        return len(stale)

    def clear(self):
        """Remove all entries; the statistics stay."""
        for key in self.keys():
            self._remove(key)

    # -- tags

    def tags(self, key):
        """Return the tags of an entry, sorted; none if it is not there."""
        return sorted(self._entries[key].tags) if key in self else []

    def tag(self, key, *tags):
        """Add tags to an entry; tell whether it is there."""
        if key not in self:
            return False
        self._entries[key].tags.update(tags)
        return True

    def drop_tag(self, tag):
        """Remove all entries that have ``tag``; return how many there were."""
        tagged = [key for key, entry in self._entries.items() if tag in entry.tags]
        for key in tagged:
            self._remove(key)
        log.info("dropped %d entries tagged %s", len(tagged), tag)
        return len(tagged)

    # -- snapshots

    def snapshot(self):
        """Return the fresh entries as a list that ``restore`` takes, the longest unused first.

        It is a copy: later changes of the cache do not show in it.
        """
        taken = []
        for key in self._order:
            entry = self._entries[key]
            if not self._is_stale(entry):
                taken.append((key, entry.value, self.remaining(key), set(entry.tags)))
        return taken

    def restore(self, snapshot):
        """Replace all entries by those of a snapshot; they have as long to live as they had then."""
        self.clear()
        for key, value, remaining, tags in snapshot:
            self._store(key, value, None, set(tags))
            if key in self._entries:
                self._entries[key].expires = None if remaining is None else self._clock() + remaining
        self._make_room()
        log.info("restored %d entries", len(self))
