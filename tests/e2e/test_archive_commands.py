"""A real run packed, unpacked, verified, read from the file, and gone on with."""

import re

import pytest

from tests.e2e.conftest import EVALUATIONS

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]


@pytest.fixture(scope="module")
def packed(dgm, searched, tmp_path_factory):
    """The finished run as a file."""
    file = tmp_path_factory.mktemp("packed") / "small.dgm"
    counts = dgm.json("export", "small", file)["counts"]
    assert counts["agents"] == dgm.json("status", "small")["agents"]
    assert counts["bytes"] == file.stat().st_size
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No test fills the user's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_reading_commands_take_the_file(dgm, searched, packed, tmp_path):
    for words in (
        ("show",),
        ("status",),
        ("show", "--lineage"),
        ("show", "0"),
        ("show", "--events"),
        ("report",),
    ):
        command, *rest = words
        of_file, of_run = (dgm(command, run, *rest).stdout for run in (packed, "small"))
        assert re.sub(r"\d+ s ago", "", of_file) == re.sub(r"\d+ s ago", "", of_run)
    dgm("export", packed, "1", tmp_path / "out")
    assert (tmp_path / "out" / "agent.toml").is_file()


def test_an_unpacked_run_goes_on(dgm, searched, packed):
    unpacked = dgm.json("export", packed, dgm.archive / "unpacked")
    assert unpacked["addresses"] == []
    summary = dgm.json("resume", "unpacked", "--max-evaluations", EVALUATIONS + 1)
    assert summary["evaluations"]["graded"] == EVALUATIONS + 1
