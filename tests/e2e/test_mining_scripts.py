"""A suite mined out of a small repository in JavaScript: what is in it."""

import asyncio
import json
import shutil
import subprocess
import sys

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Split
from dgm.sandboxes.choose import open_bubblewrap
from tests.support.small_history import make_history

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.minutes,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
    pytest.mark.skipif(not shutil.which("node"), reason="node is not installed"),
]
PACKAGE = json.dumps(
    {
        "name": "sums",
        "type": "commonjs",
        "scripts": {
            "test": "npm run lint && npm run make && node --test",
            "lint": "false",
            "make": "node build.js",
        },
    }
)
CODE = "const { sign } = require('./made.js');\nexports.half = (number) => sign * number / {};\n"
TESTS = """\
const test = require('node:test');
const assert = require('node:assert');
const { half } = require('../half.js');

test('halves', async (t) => {
  await t.test('four', () => assert.strictEqual(half(4), {}));
});
test('none', () => assert.strictEqual(half(0), 0));
test('none', () => assert.ok(true));
"""
BUILD = "require('fs').writeFileSync('made.js', 'exports.sign = 1;');\n"
LICENSE = "Permission is hereby granted, free of charge\n"


def files(code, tests):
    return {"half.js": code, "test/half.test.js": tests}


WRONG = files(CODE.replace("{}", "4"), TESTS.replace("{}", "1"))
RIGHT = files(CODE.replace("{}", "2"), TESTS.replace("{}", "2"))
STEPS = (
    ("begin", {"package.json": PACKAGE, "build.js": BUILD, "license": LICENSE, **WRONG}),
    ("Halve by two", RIGHT),
    ("Explain", {name: f"// Why.\n{text}" for name, text in RIGHT.items()}),
)  # fmt: skip


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mined")
    repo = make_history(folder / "repo", STEPS)
    words = [
        "--out",
        str(folder / "suite"),
        "--setup",
        'mkdir -p "$DGM_PACKAGES/.bin"',
        "--set",
        "mining.holdout=0",
    ]
    command = [
        sys.executable,
        "-m",
        "dgm",
        "benchmark",
        "mine",
        str(repo),
        *words,
        "--set",
        "sandbox=bubblewrap",
        "--json",
    ]
    done = subprocess.run(command, check=True, capture_output=True, timeout=600)
    return folder / "suite", json.loads(done.stdout)


def test_the_change_with_a_test_is_a_task_that_is_built_and_verified(mined):
    folder, report = mined
    assert report["tasks"] == {"history": 1}
    suite = SuiteBenchmark(folder, open_bubblewrap())
    (task,) = suite.tasks(Split.SEARCH)
    tests = suite.record(task.id).tests
    assert tests.fail_to_pass == ("test/half.test.js::halves > four", "test/half.test.js::halves")
    assert tests.pass_to_pass == ("test/half.test.js::none",)
    assert (tests.runner, tests.build) == ("node", ("node build.js",))
    assert "assert.strictEqual(half(4), 2)" in task.prompt
    assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []
    lines = [json.loads(line) for line in (folder / "mined.jsonl").read_text().splitlines()]
    assert [line.get("reason", "a task") for line in lines] == [
        "the code changes in comments or blanks only",
        "a task",
        "the first commit",
    ]
