"""``pytest --sample SHARE --sample-seed COMMIT``: a share of the test modules, another one for each commit.

A module is in or out as a whole: its tests share what is expensive, images and searches.
"""

import zlib
from pathlib import Path

TESTS = Path(__file__).parents[1]


def is_in_sample(name: str, seed: str, share: float) -> bool:
    """Return whether a seed draws a module, given by its path below ``tests/``; the same on every machine."""
    return zlib.crc32(f"{seed} {name}".encode()) < share * (1 << 32)


class Sample:
    """A pytest plugin that leaves the modules unread that are not drawn."""

    def __init__(self, seed: str, share: float) -> None:
        self._seed = seed
        self._share = share

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore a module of tests that is not drawn; a path named on the command line passes this."""
        if not collection_path.match("test_*.py"):
            return None
        name = collection_path.relative_to(TESTS).as_posix()
        return None if is_in_sample(name, self._seed, self._share) else True
