"""Calls of a package's tests are read from its scripts."""

import json

import pytest

from dgm.benchmarks.mining.script_calls import ToolCall, find_call, read_manifest
from dgm.domain import Entry


def package(**more):
    return {"package.json": Entry(json.dumps(more).encode())}


def scripts(**texts):
    return package(scripts={name.replace("_", ":"): text for name, text in texts.items()})


@pytest.mark.parametrize(
    ("script", "call"),
    [
        ("node --test", ToolCall("node")),
        ("c8 --100 node --test", ToolCall("node")),
        (
            "node --import tsx --test 'test/**/*.test.ts'",
            ToolCall("node", ("--import=tsx",), (), ("test/**/*.test.ts",)),
        ),
        (
            "node --test --test-reporter=spec test/unit/*.test.js",
            ToolCall("node", patterns=("test/unit/*.test.js",)),
        ),
        ("vitest run --coverage", ToolCall("vitest")),
        ("vitest --config vite.test.ts", ToolCall("vitest", options=("--config=vite.test.ts",))),
        ("TZ=utc jest --coverage", ToolCall("jest", env=(("TZ", "utc"),))),
        ("cross-env TZ=utc jest src", ToolCall("jest", patterns=("src",), env=(("TZ", "utc"),))),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js",
            ToolCall("jest", ("--experimental-vm-modules",)),
        ),
        ("./node_modules/.bin/jest", ToolCall("jest")),
        ("vitest --ui src", ToolCall("vitest", patterns=("src",))),
        (
            "nyc mocha --require ts-node/register -R spec --ui tdd --exit test/",
            ToolCall("mocha", options=("--require=ts-node/register", "--ui=tdd"), patterns=("test/",)),
        ),
    ],
)
def test_the_script_test_is_read(script, call):
    assert find_call(scripts(test=script)) == call


def test_scripts_that_are_called_are_followed_and_linters_are_left_out():
    files = scripts(test="npm run lint && npm run build && npm run test:unit", lint="eslint .",
                    build="tsc -p .", test_unit="node --test dist/")  # fmt: skip
    assert find_call(files) == ToolCall("node", patterns=("dist/",), build=("tsc -p .",))


def test_a_script_before_it_that_builds_is_part_of_the_call():
    files = scripts(pretest="npm run build", build="esbuild src/a.ts --outdir=lib", test="node --test")
    assert find_call(files).build == ("esbuild src/a.ts --outdir=lib",)


def test_two_calls_of_one_tool_are_one():
    files = scripts(test="npm run a && npm run b", a="node --test a.js", b="node --test b.js")
    assert find_call(files).patterns == ("a.js", "b.js")


def test_another_script_is_taken_where_test_calls_no_tool():
    assert find_call(scripts(test="echo no", test_node="node --test")).kind == "node"


def test_a_declared_tool_is_enough():
    assert find_call(package(devDependencies={"vitest": "^3"})) == ToolCall("vitest")


def test_what_npm_runs_after_an_installation_is_run_before_node():
    assert find_call(scripts(prepare="node make.js", test="node --test")).build == ("node make.js",)
    assert find_call(scripts(prepare="husky", test="node --test")).build == ()


def test_all_before_the_tool_is_the_build_of_a_given_command():
    found = find_call(scripts(make="node make.js"), "npm run make && echo done && node --test test/a.js")
    assert found == ToolCall("node", patterns=("test/a.js",), build=("node make.js", "echo done"))


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        (scripts(test="tap"), "", "no script of its package.json calls node --test"),
        (scripts(test="npm test"), "", "no script of its package.json"),
        (scripts(test="node --test"), "tape test", "--test 'tape test' calls none of"),
        ({}, "", "no script of its package.json"),
    ],
)
def test_other_tools_are_refused(files, given, message):
    with pytest.raises(ValueError, match=message):
        find_call(files, given)


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff"])
def test_a_manifest_that_cannot_be_read_is_empty(text):
    assert read_manifest({"package.json": Entry(text)}) == {}
