"""The labels of sandboxes that say which performance of which action they serve, and what engines do with them.

Sandboxes of two performances of one action are kept on different nodes: the second is there because the first may have
met a slow one.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

ACTION = "dgm.action"
PERFORMANCE = "dgm.performance"
_RUN = "dgm.run"


class PerformancePlaces:
    """The nodes or engines that hold open sandboxes of each performance."""

    def __init__(self) -> None:
        self._open: Counter[tuple[tuple[str, str], str, str]] = Counter()
        """Action, performance and place → number of open sandboxes."""

    @contextmanager
    def hold(self, labels: Mapping[str, str], place: str) -> Iterator[None]:
        """Count a sandbox with these labels at a place while the context lasts."""
        if ACTION not in labels:
            yield
            return
        key = (_action_of(labels), labels.get(PERFORMANCE, ""), place)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def keep_apart(
        self, labels: Mapping[str, str], avoided: Collection[str], places: Collection[str]
    ) -> Collection[str]:
        """Return the places at which a sandbox must not be opened.

        Args:
            labels: of the sandbox.
            avoided: places that are to be avoided anyway.
            places: all places. Where none would be left, the other performance's are not avoided.
        """
        if ACTION not in labels:
            return avoided
        action, performance = _action_of(labels), labels.get(PERFORMANCE, "")
        others = {place for known, number, place in self._open if known == action and number != performance}
        wanted = {*avoided, *others}
        return wanted if others and set(places) - wanted else avoided


def _action_of(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get(_RUN, ""), labels[ACTION]
