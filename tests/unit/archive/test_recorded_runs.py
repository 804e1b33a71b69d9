"""Runs recorded by an earlier version: they open, their views say the same, and their decisions replay.

``DGM_UPDATE_SNAPSHOTS=1`` writes the expected views anew, next to the runs in ``tests/recorded``.
"""

import json
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from dgm.cli.main import main

pytestmark = pytest.mark.starts_processes

RECORDED = Path(__file__).parents[2] / "recorded"
RUNS = {
    "crashed": "a search that was killed and resumed",
    "approved": "children that waited for approval",
    "crossed": "a bandit of operators, and a holdout evaluation",
    "mated": "a crossover of two children made by hand, which no policy asked for",
    "examined": "agents of another run, evaluated twice on two tasks",
}
BY_HAND = {"mated": 2}
"""Expansions that no policy asked for."""
COMMANDS = (
    "status RUN",
    "show RUN",
    "show RUN best",
    "show RUN 1",
    "show RUN best seed --diff",
    "show RUN best --lineage",
    "show RUN --events",
    "report RUN",
    "replay RUN",
)
VOLATILE = {"folder", "now_unix_s", "age_s", "seconds", "body"}
"""Fields that differ from machine to machine or between readings; ``body`` is the log's own layout."""


@pytest.fixture(params=RUNS)
def run(request, tmp_path, monkeypatch):
    """The name of a recorded run in the archive folder."""
    with tarfile.open(RECORDED / f"{request.param}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return request.param


def test_views_of_a_recorded_run_stay_the_same(run, capsys):
    views = {}
    for command in COMMANDS:
        words = command.replace("RUN", run).split()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--json"])
        output = capsys.readouterr()
        lines = [strip_volatile(json.loads(line)) for line in output.out.splitlines() if "--events" in words]
        view = lines or (strip_volatile(json.loads(output.out)) if output.out else None)
        views[command] = [ended.value.code] if view is None else [ended.value.code, view]
    file = RECORDED / f"{run}.json.xz"
    if os.environ.get("DGM_UPDATE_SNAPSHOTS") == "1":
        file.write_bytes(lzma.compress(json.dumps(views, indent=1, sort_keys=True).encode()))
    expected = json.loads(lzma.decompress(file.read_bytes()))
    for command in COMMANDS:
        assert views[command] == expected[command], command
    if run != "examined":
        assert views["replay RUN"][1]["differing"] == BY_HAND.get(run, 0)


def strip_volatile(view):
    """Return a view without its volatile fields."""
    if isinstance(view, dict):
        return {key: strip_volatile(value) for key, value in view.items() if key not in VOLATILE}
    return [strip_volatile(item) for item in view] if isinstance(view, list) else view
