"""Count the modules of dgm that an expansion, an evaluation and a model call pass through in a real search.

Run it with ``python -m tests.perf.count_modules FOLDER``. The search has one worker and the offline model under
bubblewrap. A module counts if one of its functions is entered. What shows a search to the user does not count, nor does
the inside of the offline model.
"""

import os
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import dgm

ROOT = str(Path(dgm.__file__).parent) + os.sep
LEFT_OUT = ("api", "cli", "offline", "render", "tui", "views")
CORE = (
    *("archive", "evaluation", "meta", "policies", "replay", "search", "stats", "worker"),
    *("assemble.py", "domain.py", "launch.py"),
)
EVALUATIONS = 12


class Counter:
    """The modules that each expansion, evaluation and model call passed through."""

    def __init__(self) -> None:
        self.passed: dict[str, list[set[str]]] = defaultdict(list)
        self._kind = ""
        self._action: set[str] = set()
        self._call: set[str] | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one function's start; see ``sys.setprofile``."""
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(ROOT):
            return
        module = path.removeprefix(ROOT)
        if module.partition(os.sep)[0] in LEFT_OUT:
            return
        match module, frame.f_code.co_name:
            case "search/loop.py", "_choose":
                self._end_action()
            case "search/loop.py", "_start":
                self._kind = type(frame.f_locals["what"]).__name__.lower()
            case "gateway/server.py", "_find_lease":
                self._end_call()
                self._call = set()
            case _:
                pass
        self._action.add(module)
        if self._call is not None:
            self._call.add(module)

    def _end_action(self) -> None:
        if self._kind:
            self.passed[self._kind].append(self._action)
        # What follows an action's last call is no part of that call.
        self._kind, self._action, self._call = "", set(), None

    def _end_call(self) -> None:
        if self._call:
            self.passed["model call"].append(self._call)


@contextmanager
def counting(counter: Counter) -> Iterator[None]:
    """Count in all threads until the end of the block."""
    threading.setprofile(counter)
    sys.setprofile(counter)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def main(folder: Path) -> None:
    """Search in a folder, and print the medians."""
    os.environ["DGM_ARCHIVE"] = str(folder)
    counter = Counter()
    with counting(counter):
        dgm.evolve(
            name="counted", model="offline", sandbox="bubblewrap", workers=1, max_evaluations=EVALUATIONS
        )
    for kind, segments in sorted(counter.passed.items()):
        everything = statistics.median(map(len, segments))
        core = statistics.median(
            sum(module.partition(os.sep)[0] in CORE for module in modules) for modules in segments
        )
        print(f"{kind}: {len(segments)} times, {everything:g} modules, {core:g} of them core")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
