"""The file of a run's engines or nodes: written in one step, and never a reason to fail."""

import json
from dataclasses import asdict

import pytest

from dgm.archive.garbage import is_own_part
from dgm.archive.live_nodes import FILE, NodeState, read_live_nodes, remove_live_nodes, write_live_nodes

NODE = NodeState("ssh://a", 8, 3, 40, 1, 2, "no answer")


def test_nodes_are_read_as_they_were_written_and_gone_when_removed(tmp_path):
    for nodes in ([NODE, NodeState("ssh://b", 4, 0, 0, 0, 0)], []):
        write_live_nodes(tmp_path, nodes)
        assert read_live_nodes(tmp_path) == nodes
    (left,) = tmp_path.iterdir()
    assert is_own_part(left)
    remove_live_nodes(tmp_path)
    remove_live_nodes(tmp_path)
    assert read_live_nodes(tmp_path) == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": 1}', '{"nodes": [{}]}', '{"nodes": [[1]]}'])
def test_what_dgm_did_not_write_is_no_node(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert read_live_nodes(tmp_path) == ()


def test_texts_of_a_stranger_are_bounded(tmp_path):
    (tmp_path / FILE).write_text(json.dumps({"nodes": [{**asdict(NODE), "problem": "x" * 10_000}]}))
    assert len(read_live_nodes(tmp_path)[0].problem) == 500
