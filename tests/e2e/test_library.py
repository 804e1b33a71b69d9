"""Every example of ``docs/python.md`` does what it says."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.program import copy_of_run

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

TEXT = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
BLOCK = re.compile(
    r"(?:^`(?P<file>[\w./-]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS = [found.groupdict() for found in BLOCK.finditer(TEXT)]
PROGRAMS = [block["body"] for block in BLOCKS if block["kind"] == "python" and not block["file"]]
FILES = {block["file"]: block["body"] for block in BLOCKS if block["file"]}
PROJECTS = [name for name in FILES if name.endswith("pyproject.toml")]
HEADINGS = [re.findall(r"^#+ (.*)$", TEXT[: TEXT.index(body)], re.MULTILINE)[-1] for body in PROGRAMS]
PLUGGED = next(line[4:].split() for line in TEXT.splitlines() if line.startswith("dgm run --name plugged"))


@pytest.fixture
def demo(dgm, searched):
    """The folder of the run that the examples read."""
    folder = dgm.archive / "demo"
    if not folder.exists():
        copy_of_run(dgm.archive / "small", folder)
    return folder


@pytest.mark.parametrize("program", PROGRAMS, ids=HEADINGS)
def test_example_runs(dgm, demo, tmp_path, program):
    before = (demo / "run.db").read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DGM_ARCHIVE": str(dgm.archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or "stream(" in program, (
        "nothing is written to demo any more, so only a stream says nothing"
    )
    assert (demo / "run.db").read_bytes() == before


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The packages of the examples, as if they were installed."""
    place = tmp_path / "site"
    for name, body in FILES.items():
        if name.endswith(".py"):
            place.mkdir(exist_ok=True)
            (place / name.rpartition("/")[2]).write_text(body)
    for project in map(tomllib.loads, (FILES[name] for name in PROJECTS)):
        named = project["project"]
        info = place / f"{named['name']}-{named['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {named['name']}\nVersion: {named['version']}\n"
        )
        lines = [
            f"[{group}]\n{name} = {value}\n"
            for group, points in named["entry-points"].items()
            for name, value in points.items()
        ]
        (info / "entry_points.txt").write_text("".join(lines))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))


def test_a_search_with_every_kind_of_plugin(dgm, site):
    summary = dgm.json(*PLUGGED, "--set", "sandbox=bubblewrap")
    assert summary["evaluations"]["graded"] == 3
    assert summary["evaluations"]["resolved"] >= 1
    assert (summary["benchmark"], summary["models"]["solve"], summary["policy"]) == (
        "sums",
        "careful",
        "keen",
    )
    agents = dgm.json("show", "plugged")["agents"]
    assert [agent["operator"] for agent in agents[1:]] == ["advise"] * (len(agents) - 1)
    assert "Read the failing test first." in dgm("show", "plugged", "1", "--diff").stdout
    assert {line["model"] for line in summary["spend"]["by"]} <= {"careful", "dry-run"}
