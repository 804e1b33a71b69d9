"""Calls of tests are read from the language's record, from scripts, and from the user's command."""

import json

import pytest

from dgm.benchmarks.languages import RUNNERS, Language
from dgm.benchmarks.mining.calls import find_call, read_manifest
from dgm.benchmarks.test_spec import TestSpec
from dgm.domain import Entry

JAVASCRIPT, GO, RUST, CPP, JVM = (
    Language.JAVASCRIPT, Language.GO, Language.RUST, Language.CPP, Language.JVM,
)  # fmt: skip
MODULE = {"go.mod": Entry(b"module example.org/sums/v2\n\ngo 1.18\n")}
CRATE = {"Cargo.toml": Entry(b"")}


def call(runner, flags=(), options=(), patterns=(), command="", **more):
    more["command"] = (command,) if command else ()
    restored = RUNNERS[runner].restored
    return TestSpec(runner=runner, restored=restored, flags=flags, options=options, patterns=patterns, **more)


def package(**more):
    return {"package.json": Entry(json.dumps(more).encode())}


def scripts(**texts):
    return package(scripts={name.replace("_", ":"): text for name, text in texts.items()})


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("node --test", call("node")),
        ("c8 --100 node --test", call("node")),
        (
            "node --import tsx --test 'test/**/*.test.ts'",
            call("node", ("--import=tsx",), (), ("test/**/*.test.ts",)),
        ),
        (
            "node --test --test-reporter=spec test/unit/*.test.js",
            call("node", patterns=("test/unit/*.test.js",)),
        ),
        ("vitest run --coverage", call("vitest")),
        ("vitest --config vite.test.ts", call("vitest", options=("--config=vite.test.ts",))),
        ("TZ=utc jest --coverage", call("jest", env=(("TZ", "utc"),))),
        ("cross-env TZ=utc jest src", call("jest", patterns=("src",), env=(("TZ", "utc"),))),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js",
            call("jest", ("--experimental-vm-modules",)),
        ),
        ("./node_modules/.bin/jest", call("jest")),
        ("vitest --ui src", call("vitest", patterns=("src",))),
        (
            "nyc mocha --require ts-node/register -R spec --ui tdd --exit test/",
            call("mocha", options=("--require=ts-node/register", "--ui=tdd"), patterns=("test/",)),
        ),
    ],
)
def test_the_script_test_is_read(script, expected):
    assert find_call(JAVASCRIPT, scripts(test=script)) == expected


def test_scripts_that_are_called_are_followed_and_linters_are_left_out():
    files = scripts(test="npm run lint && npm run build && npm run test:unit", lint="eslint .",
                    build="tsc -p .", test_unit="node --test dist/")  # fmt: skip
    assert find_call(JAVASCRIPT, files) == call("node", patterns=("dist/",), build=("tsc -p .",))


def test_a_script_before_it_that_builds_is_part_of_the_call():
    files = scripts(pretest="npm run build", build="esbuild src/a.ts --outdir=lib", test="node --test")
    assert find_call(JAVASCRIPT, files).build == ("esbuild src/a.ts --outdir=lib",)


def test_two_calls_of_one_tool_are_one():
    files = scripts(test="npm run a && npm run b", a="node --test a.js", b="node --test b.js")
    assert find_call(JAVASCRIPT, files).patterns == ("a.js", "b.js")


def test_another_script_is_taken_where_test_calls_no_tool():
    assert find_call(JAVASCRIPT, scripts(test="echo no", test_node="node --test")).runner == "node"


def test_a_declared_tool_is_enough():
    assert find_call(JAVASCRIPT, package(devDependencies={"vitest": "^3"})) == call("vitest")


def test_what_npm_runs_after_an_installation_is_run_before_node():
    assert find_call(JAVASCRIPT, scripts(prepare="node make.js", test="node --test")).build == (
        "node make.js",
    )
    assert find_call(JAVASCRIPT, scripts(prepare="husky", test="node --test")).build == ()


def test_all_before_the_tool_is_the_build_of_a_given_command():
    found = find_call(
        JAVASCRIPT, scripts(make="node make.js"), "npm run make && echo done && node --test test/a.js"
    )
    assert found == call("node", patterns=("test/a.js",), build=("node make.js", "echo done"))


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
        find_call(JAVASCRIPT, files, given)


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff"])
def test_a_manifest_that_cannot_be_read_is_empty(text):
    assert read_manifest({"package.json": Entry(text)}) == {}


def test_all_packages_are_called_unless_it_is_said():
    assert find_call(GO, MODULE).runner == "go"
    found = find_call(
        GO, MODULE, "go generate ./... && A=b go test -v -tags 'x y' -short -race -count 1 ./a/..."
    )
    assert found.build == ("go generate ./...",)
    assert found.env == (("A", "b"),)
    assert (found.flags, found.options, found.patterns) == (("-tags=x y",), ("-test.short",), ("./a/...",))


def test_the_records_say_the_other_calls():
    assert find_call(RUST, CRATE) == call("command", command="cargo test --offline --tests --no-fail-fast")
    assert find_call(RUST, CRATE, "cargo test -q; echo").command == ("cargo test --no-fail-fast -q; echo",)
    assert find_call(JVM, {"pom.xml": Entry(b"")}).command == ("mvn -B -o test",)
    assert find_call(CPP, {}, "make check", ["out/*.xml"]) == call(
        "report", command="make check", reports=("out/*.xml",)
    )
    assert find_call(Language.PYTHON, {}, "python -m pytest -m 'not slow'").options == ("-m", "not slow")


@pytest.mark.parametrize(
    ("language", "files", "command", "message"),
    [
        (GO, {}, "", "no go.mod"),
        (GO, MODULE, "make test", "must call go test"),
        (GO, MODULE, "go test -run TestA ./...", "-run is not taken over"),
        (GO, MODULE, "go test ./a -args x", "-args is not taken over"),
        (GO, MODULE, "cd a && go test ./...", "cd holds for one step alone"),
        (GO, MODULE, "go vet && export A=1 && go test", "export holds for one step alone"),
        (RUST, {}, "", "no Cargo.toml"),
        (RUST, CRATE, "make test", "does not call cargo test"),
        (RUST, CRATE, "cargo test && echo", "never runs"),
        (CPP, {}, "", "no CMakeLists.txt"),
        (JVM, {}, "", "no pom.xml or build.gradle"),
        (CPP, {}, "make check", "--test needs mining.reports"),
        (Language.PYTHON, {}, "nosetests", "must call pytest"),
        (Language.PYTHON, {}, "pytest 'a", "No closing quotation"),
    ],
)
def test_calls_that_cannot_be_taken_over_are_refused(language, files, command, message):
    with pytest.raises(ValueError, match=message):
        find_call(language, files, command)
