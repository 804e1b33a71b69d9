"""Output that is full, closed or left by its reader, and terminals that lack characters."""

import os
import subprocess
import sys

import pytest

from dgm.archive.events import RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Budget

pytestmark = pytest.mark.starts_processes

DGM = f"{sys.executable} -m dgm"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """An archive with a run that has begun, whose log is longer than the buffer of a pipe."""
    folder = tmp_path_factory.mktemp("archive")
    record = {"id": "x", "settings": Settings().model_dump(mode="json"), "versions": {"benchmark": "1"}}
    with Run.create(folder / "begun", {**record, "name": "begun", "created": 0.0, "sandbox": "none"}) as run:
        sessions = range(2_000)
        run.append_many([RunStarted(Budget(evaluations=n + 1), (), resumed=n > 0) for n in sessions])
    return folder


def shell(command, archive, **variables):
    environment = {**os.environ, "DGM_ARCHIVE": str(archive), **variables}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", ["--help", "status begun", "show begun --events --json", "show -h"])
def test_a_full_disk_is_said_in_one_line(words, archive):
    done = shell(f"{DGM} {words} > /dev/full", archive)
    assert (done.returncode, done.stderr) == (
        1,
        "dgm: cannot write: No space left on device\n",
    )


@pytest.mark.parametrize("words", ["show begun --events", "show begun --events --json"])
def test_a_reader_that_has_gone_hears_nothing(words, archive):
    done = shell(f"{DGM} {words} | head -1", archive)
    assert (done.returncode, done.stderr) == (1, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code"), [("status begun >&-", 0), ("status begun <&- >&- 2>&-", 0), ("nothing 2>&-", 2)]
)
def test_closed_streams_lead_nowhere(words, code, archive):
    done = shell(f"{DGM} {words}", archive)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_encoding_lacks_is_escaped(encoding, archive):
    wrong = shell(f"{DGM} status 'run→★'", archive, PYTHONIOENCODING=encoding)
    assert wrong.returncode == 2
    assert "run\\u2192\\u2605" in wrong.stderr
