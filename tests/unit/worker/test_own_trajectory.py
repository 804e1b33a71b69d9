"""An agent's own trajectory, read from its sandbox: one file, or all that a pattern names."""

import asyncio
import json
import logging
import subprocess

import pytest

from dgm.meta.contract import Contract
from dgm.protocols import Completed
from dgm.worker.supplies import glob_pattern, read_own_trajectory

pytestmark = pytest.mark.starts_processes


class Place:
    """A sandbox without walls."""

    async def exec(self, argv, *, timeout_s, cwd="/", stdin=b"", output_limit=0, processor_s=None):
        done = subprocess.run(
            argv, cwd=cwd, input=stdin, stdout=subprocess.PIPE, timeout=timeout_s, check=False
        )
        return Completed(done.returncode, done.stdout)


def log_of(text):
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"


def read(pattern):
    contract = Contract(command=("run",), check=("check",), trajectory=str(pattern))
    return asyncio.run(read_own_trajectory(Place(), contract))


@pytest.fixture
def logs(tmp_path):
    """Sessions of a program in folders, with one of a sub-agent, and a file that is none."""
    texts = {"p/b.jsonl": "main", "p/b/subagents/agent-1.jsonl": "helper", "p/note.txt": "no"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(log_of(text))
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("p/b.jsonl", ["main"]),
        ("*/*.jsonl", ["main"]),
        ("**/*.jsonl", ["main", "helper"]),
        ("p/b/subagents/agent-*.jsonl", ["helper"]),
    ],
)
def test_a_pattern_names_files_and_each_is_a_thread(logs, pattern, texts):
    own = read(logs / pattern)
    assert [[turn.message.text for turn in thread.turns] for thread in own.threads] == [
        [text] for text in texts
    ]
    assert own.data.decode().splitlines() == [log_of(text).strip() for text in texts]


@pytest.mark.parametrize("pattern", ["*.jsonl", "nowhere/*.jsonl", "p/c.jsonl"])
def test_no_file_is_no_trajectory(logs, pattern):
    assert read(logs / pattern) is None


def test_a_form_that_is_not_known_is_one_line(logs, caplog):
    (logs / "p/c.jsonl").write_text('{"kind": "other"}\n')
    with caplog.at_level(logging.WARNING):
        assert read(logs / "p/c*") is None
    (record,) = caplog.records
    assert "p/c* has no form that is known (mini-swe-agent, ATIF" in record.message


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.json", "a.json", True),
        ("*.json", "a/b.json", False),
        ("**/*.json", "b.json", True),
        ("a/**/b.json", "a/c/d/b.json", True),
        ("a.json", "aXjson", False),
    ],
)
def test_wildcards(pattern, path, matches):
    assert bool(glob_pattern(pattern).fullmatch(path)) == matches
