"""Sinks by their addresses, one of an installed package among them."""

import pytest

import dgm
from dgm.api.exporting import Content
from dgm.archive.events import RunStopped
from dgm.archive.run import Run
from dgm.errors import ArchiveBusy, Infrastructure, UserError
from dgm.sinks.cursor import hold_deliveries
from dgm.sinks.sink import check_sink, hide_address
from tests.support.runs.growing import Growing

POINTS: dict[str, list[int]] = {}
"""Rest of an address → steps of the points that its sink has."""


class ListSink:
    """A sink that appends to a list, and refuses when its address says so."""

    def __init__(self, rest: str) -> None:
        self.has = POINTS.setdefault(rest, [])
        self.refuses = rest.startswith("https://")
        self.steps: list[int] = []
        self.finished = False

    def observe(self, recorded, feed) -> None:
        if feed.step > len(self.has) and (point := feed.point()):
            self.steps.append(point.step)

    def deliver(self) -> int:
        if self.refuses:
            raise OSError("https://host/token refused")
        self.has += self.steps
        self.steps = []
        return len(self.has)

    def finish(self, feed) -> None:
        self.has.append(-1)

    def close(self) -> None:
        pass


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with the sink ``list:``."""
    info = tmp_path / "packages" / "lists-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lists\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[dgm.sinks]\nlist = {__name__}:ListSink\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    POINTS.clear()


@pytest.fixture
def folder(tmp_path):
    growing = Growing(tmp_path / "run")
    for task in range(3):
        growing.graded(0, task, good=True)
    growing.run.append(RunStopped("stopped"))
    growing.run.close()
    return tmp_path / "run"


@pytest.mark.usefixtures("installed")
def test_an_export_sends_what_is_missing(folder) -> None:
    exported = dgm.export(folder, "list:x")
    assert (exported.what, exported.target, exported.counts) == (Content.POINTS, "list:…", {"points": 3})
    assert POINTS["x"] == [1, 2, 3, -1]


@pytest.mark.usefixtures("installed")
def test_a_run_that_is_written_is_not_finished(folder) -> None:
    with Run.open(folder, write=True):
        dgm.export(folder, "list:x")
    assert POINTS["x"] == [1, 2, 3]


@pytest.mark.usefixtures("installed")
def test_a_failure_names_no_address(folder) -> None:
    with pytest.raises(Infrastructure) as error:
        dgm.export(folder, "list:https://host/token")
    assert str(error.value) == "list:… failed: OSError: … refused"


@pytest.mark.usefixtures("installed")
def test_only_one_process_delivers_a_run(folder) -> None:
    with hold_deliveries(folder), pytest.raises(ArchiveBusy):
        dgm.export(folder, "list:x")


@pytest.mark.usefixtures("installed")
def test_a_sink_gets_the_whole_run(folder) -> None:
    with pytest.raises(UserError, match="gets the whole run; leave out 'best'"):
        dgm.export(folder, "best", "list:x")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("secret-token", "the address is no sink; an address begins with one of mlflow:, otlp:"),
        ("https://host/secret", "https:… is no sink"),
        ("wandb:x", "wandb: is not installed; run: pip install 'dgm[wandb]'"),
    ],
)
def test_what_is_no_sink_is_refused_without_its_secret(address, problem) -> None:
    with pytest.raises(UserError) as error:
        check_sink(address)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("address", "words"), [("mlflow:http://me:key@host", "mlflow:…"), ("key", "the address")]
)
def test_messages_show_the_scheme_alone(address, words) -> None:
    assert hide_address(address) == words
