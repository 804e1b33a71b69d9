"""Runs that reports are made of, without an engine."""

import io
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from dgm.archive.run import Run
from dgm.domain import Verdict
from dgm.evaluation.schedule import Comparison, compare_verdicts
from dgm.views.report import ReportView
from tests.support.runs.hostile import hostile_folder  # noqa: F401  (a fixture)
from tests.support.runs.paid import small


class Page(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def twenty(gained: int, lost: int, both: int) -> Comparison:
    """Twenty tasks on which the second agent gains and loses as many."""
    kinds = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * both
    kinds += [(False, False)] * (20 - len(kinds))
    words = {True: Verdict.RESOLVED, False: Verdict.UNRESOLVED}
    return compare_verdicts((f"task-{n:02}", words[one], words[two]) for n, (one, two) in enumerate(kinds))


@pytest.fixture
def snapshot_text():
    """Compare what is printed with a file; ``DGM_UPDATE_SNAPSHOTS=1`` writes the file."""

    def check(name: str, *parts) -> None:
        console = Console(file=io.StringIO(), width=100)
        console.print(*parts, sep="\n\n")
        text = "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"
        file = Path(__file__).parent / f"{name}.txt"
        if os.environ.get("DGM_UPDATE_SNAPSHOTS"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


@pytest.fixture
def paid(tmp_path: Path):
    """Three agents, every kind of failure, money spent; no holdout evaluation."""
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


@pytest.fixture(scope="module")
def hostile(hostile_folder):  # noqa: F811
    """The report of a run in which every text is hostile."""
    with Run.open(hostile_folder) as run:
        yield ReportView.load(run)
