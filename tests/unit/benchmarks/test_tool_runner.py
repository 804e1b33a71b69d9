"""Parts of the program that runs test tools of JavaScript in a sandbox."""

import json

import pytest

from dgm.benchmarks import tool_runner
from dgm.benchmarks.named_runner import NO_TEST

TOOL = {
    "kind": "node",
    "flags": ["--import=tsx"],
    "options": ["--x"],
    "patterns": ["src"],
    "env": [["TZ", "utc"]],
}


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("a.test.js", True),
        ("lib/a_test.mjs", True),
        ("test.ts", True),
        ("test-a.cjs", True),
        ("test/deep/helper.js", True),
        ("tests/a.js", False),
        ("src/attest.js", False),
        ("test/data.json", False),
    ],
)
def test_node_finds_tests_by_their_names(name, is_test):
    assert tool_runner.is_node_test(name) is is_test


def test_a_folder_that_is_named_holds_tests_as_node_finds_them():
    assert tool_runner.is_below("test/a.js", "test")
    assert tool_runner.is_below("lib/a.test.js", "lib")
    assert not tool_runner.is_below("lib/a.js", "lib")
    assert not tool_runner.is_below("other/a.test.js", "lib")


def test_node_runs_one_file_in_its_own_entry():
    command, env = tool_runner.tool_command(TOOL, "/tmp/x", ["test/a.js"])
    assert command[:2] == ["node", "--import=tsx"]
    assert command[-1] == "/tmp/x/node_entry.mjs"
    assert env["TZ"] == "utc"


def test_vitest_is_given_options_and_patterns_and_jest_the_files():
    command, _ = tool_runner.tool_command({**TOOL, "kind": "vitest"}, "/tmp/x", ["test/a.js"])
    assert command[2:] == ["/tmp/x/vitest_main.mjs", "--x", "src"]
    command, _ = tool_runner.tool_command({**TOOL, "kind": "jest"}, "/tmp/x", ["test/a.js"])
    assert command[-2:] == ["--runTestsByPath", "test/a.js"]
    command, _ = tool_runner.tool_command({**TOOL, "kind": "jest"}, "/tmp/x", [])
    assert command[-1] == "src"


def test_packages_in_the_workspace_are_found_but_caches_are_not(tmp_path):
    for name in ("node_modules/.vite/x", "node_modules/chai/y", "src/node_modules/z"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "node_modules" / ".keep").write_text("")
    assert tool_runner.find_packages(tmp_path) == {"node_modules/chai", "src/node_modules/z"}


class Said:
    """A process of a tool with what it has said."""

    def __init__(self, tests, lines, *, controls=("a.js", "b.js"), end=True):
        self.process = tool_runner.ToolProcess(tests)
        said = [{"control": name, "file": file} for name in self.process.control_names for file in controls]
        said += [*lines, *([{"end": True}] if end else [])]
        nonce = self.process._nonce
        self.process._results += "".join(f"\n{nonce} {json.dumps(each)}\n" for each in said).encode()
        self.process._believe(0)


def test_tests_count_where_each_file_failed_its_controls():
    lines = [{"test": "a.js::x", "outcome": "passed"}, {"test": "b.js::y", "outcome": "failed"}]
    run = Said(["a.js::x", "b.js::y"], lines).process
    assert (run.outcomes, run.problem) == ({"a.js::x": "passed", "b.js::y": "failed"}, "")


def test_a_file_whose_controls_did_not_fail_spoils_all():
    lines = [{"test": "a.js::x", "outcome": "passed"}, {"test": "c.js::y", "outcome": "passed"}]
    run = Said(["a.js::x", "c.js::y"], lines).process
    assert set(run.outcomes.values()) == {"failed"}
    assert "tampered" in run.problem


def test_what_a_file_says_under_a_test_twice_does_not_pass():
    lines = [{"test": "a.js::x", "outcome": "passed"}] * 2
    assert Said(["a.js::x"], lines).process.outcomes == {"a.js::x": "reported twice"}


def test_a_process_without_an_end_is_told():
    run = Said(["a.js::x"], [{"test": "a.js::x", "outcome": "passed"}], end=False).process
    assert "ended early" in run.problem


def test_a_survey_tells_every_test_that_it_finds():
    assert Said(None, [{"test": "a.js::x", "outcome": "passed"}]).process.outcomes == {"a.js::x": "passed"}
    assert Said(None, [], end=False).process.tests == [NO_TEST]


def test_mocha_runs_one_file_in_its_own_entry():
    command, _ = tool_runner.tool_command({**TOOL, "kind": "mocha"}, "/tmp/x", ["test/a.js"])
    assert command == ["node", "--import=tsx", "/tmp/x/mocha_entry.mjs", "--x"]
