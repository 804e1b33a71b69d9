"""Everything that leaves an archive says of which run, policy and seed it is."""

import xml.etree.ElementTree as ET

import networkx
import pytest

from dgm.archive.run import Run, RunIdentity, identity_of
from dgm.config import Settings
from dgm.exports.git import write_source
from dgm.exports.graph import write_graph
from dgm.render.html.svg import Drawing
from tests.support.runs.made import make_run

pytestmark = pytest.mark.slow

OWN = {"run": "one", "policy": "hgm", "seed": 7}


@pytest.fixture
def run(tmp_path):
    settings = Settings.model_validate({"model": "offline", "policy": {"name": "hgm"}, "seed": 7})
    with Run.open(make_run(tmp_path / "one", settings, ["+", "-"])) as opened:
        yield opened


def test_a_run_inside_another_is_named_with_it(run):
    assert identity_of(run) == RunIdentity("one", "hgm", 7)
    with Run.open(make_run(run.folder / "holdout")) as inner:
        assert identity_of(inner).run == "one/holdout"


def test_graphs_carry_it(run, tmp_path):
    write_graph(run, tmp_path / "t.graphml")
    graph = networkx.read_graphml(tmp_path / "t.graphml", node_type=int).graph
    assert {name: graph[name] for name in OWN} == OWN


@pytest.mark.starts_processes
def test_a_repository_describes_itself(run, tmp_path):
    write_source(run, run.tree.agents[0], tmp_path / "clone")
    description = (tmp_path / "clone" / ".git" / "description").read_text()
    assert description == "agent 0 of run one, policy hgm, seed 7\n"


def test_a_picture_describes_itself(run):
    root = ET.fromstring(Drawing("curves", 10, 10).file(str(identity_of(run))))
    assert [each.text for each in root if each.tag.endswith("desc")] == ["run one, policy hgm, seed 7"]
