"""Each shipped design solves a task in a sandbox, though the model's first fix is wrong where it makes several."""

import json
import re
import zlib
from dataclasses import replace

import pytest

from dgm.paths import seed_names
from tests.support.hosted import KEY, PROVIDERS, events, rows
from tests.support.task_author import TaskAuthor
from tests.support.wire_server import WireServer

pytestmark = pytest.mark.sandbox
PROVIDER = PROVIDERS["openai-chat"]
TASK = "ledger-shares-add-up-to-more"
ALWAYS = ("codeact", "reviser")
GALLERY = [name for name in seed_names() if name not in ("plain", "solid")]


def trace(run, digest):
    """The text of a recorded trace."""
    ((data,),) = rows(run, f"select zlib from blobs where sha256 = '{digest}'")
    return zlib.decompress(data).decode()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.sampled) for name in GALLERY]
)
def test_a_design_solves_a_task_and_leaves_nothing_but_the_fix(dgm, tmp_path, name):
    author = TaskAuthor(TASK)
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=author) as server:
        program = replace(dgm, archive=tmp_path / "archive", environment={PROVIDER.key_env: KEY})
        words = [
            name,
            "--benchmark",
            "starter",
            "--split",
            "search",
            "--tasks",
            TASK,
            "--into",
            tmp_path / "it",
        ]
        found = program.json("evaluate", *words, "--set", "sandbox=bubblewrap", *PROVIDER.words(server.url))
    (agent,) = found["agents"]
    assert agent["resolved"] == [TASK]
    (graded,) = events(tmp_path / "it", "task_graded")
    traces = graded["outcome"]["cost"]["traces"]
    assert json.loads(trace(tmp_path / "it", traces["circumstances"]))["exit_code"] == 0
    assert re.findall(r"^diff --git a/(\S+)", trace(tmp_path / "it", traces["patch"]), re.M) == [
        "ledger/split.py"
    ]
