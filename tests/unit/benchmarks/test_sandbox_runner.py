"""Parts of the program that grades inside the sandbox."""

import io
import json
import os
from pathlib import Path

import pytest

from dgm.benchmarks import sandbox_runner
from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.sandbox_runner import RUST_TESTS

TASK = {
    "alone": False, "framework": "", "command": [], "build": [], "env": {}, "tests": None, "files": [], "patterns": [],
    "restored": [], "deleted": [], "roots": [], "parts": [], "reports": [], "control": {}, "limit_s": 9,
    "timeout_s": 9,
}  # fmt: skip


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def lay_out(tmp_path):
    """Returns a run, laid out over a start and the files that a patch leaves."""

    def begin(kind, results, start, patched=(), hidden=(), **more):
        write(tmp_path / "job" / "start", start)
        write(tmp_path / "job" / "hidden", dict(hidden))
        write(tmp_path / "work", {**start, **dict(patched)})
        task = {**TASK, "results": results, "workdir": str(tmp_path / "work"), **more}
        run = kind(task, None)
        run.lay_out(tmp_path / "job", tmp_path / "job" / "start")
        return run

    return begin


def test_tests_are_put_back_and_hidden_ones_laid_over_them(lay_out, tmp_path):
    run = lay_out(
        sandbox_runner.CommandRun,
        "jest",
        {"test/a.js": "old", "test/b.js": "old", "a.js": "old"},
        {"test/a.js": "new", "test/added.js": "new", "a.js": "new", "node_modules/x/i.js": "new"},
        {"test/c.js": "hidden"},
        restored=["test", "node_modules"],
        deleted=["test/b.js"],
    )
    texts = {name: run.read_text(name) for name in sandbox_runner.listed(run.workdir)}
    assert texts == {"test/a.js": "old", "test/c.js": "hidden", "a.js": "new"}
    assert not (run.workdir / "node_modules").exists()
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"src/a.js": "new", "test/b.js": "new"}, ""),
        ({"test/a.js": "new"}, "one of their files was changed"),
        ({"node_modules/chai/index.js": "new"}, "packages appeared in node_modules"),
        ({"node_modules/.cache/x": "new"}, ""),
    ],
)
def test_tests_that_change_while_they_run_are_tampered_with(lay_out, change, problem):
    run = lay_out(sandbox_runner.CommandRun, "jest", {"test/a.js": "old"}, restored=["test"])
    write(run.workdir, change)
    assert run.find_changes() == (problem and f"the tests were tampered with: {problem}")


def test_a_module_that_python_has_is_removed_where_the_patch_added_it(lay_out):
    start = {"json.py": "", "own/__init__.py": ""}
    added = {
        "random.py": "",
        "unittest/__init__.py": "",
        "unittest/x.txt": "",
        "pathlib/x.py": "",
        "mine.py": "",
        "nose/__init__.py": "",
        "pluggy.so": "",
    }
    run = lay_out(sandbox_runner.Run, "exit", start, added, restored=["conftest.py"])
    assert sandbox_runner.listed(run.workdir) == ["json.py", "mine.py", "own/__init__.py", "pathlib/x.py"]


@pytest.mark.parametrize(
    ("name", "patterns", "is_test"),
    [
        ("a.test.js", [], True),
        ("lib/a_test.mjs", [], True),
        ("test-a.cjs", [], True),
        ("test/deep/helper.js", [], True),
        ("tests/a.js", [], False),
        ("src/attest.js", [], False),
        ("test/data.json", [], False),
        ("node_modules/x/test.js", [], False),
        ("lib/a.test.js", ["lib"], True),
        ("lib/a.test.js", ["./lib/"], True),
        ("lib/a.js", ["lib"], False),
        ("lib/a.js", ["lib/*.js"], True),
        ("lib/a.js", ["lib/**/*.js"], True),
        ("lib/a.test.js", ["test"], False),
    ],
)
def test_node_runs_files_by_its_own_rule_or_by_patterns(tmp_path, name, patterns, is_test):
    write(tmp_path, {name: ""})
    assert sandbox_runner.find_node_files(tmp_path, patterns) == ([name] if is_test else [])


@pytest.mark.parametrize(
    ("framework", "file", "text", "words"),
    [
        ("node", "a.js", "const x = require('x');\n", 'require("node:test")'),
        ("node", "a.js", "import x from 'x';\n", 'from "node:test"'),
        ("node", "a.mjs", "await import('x');\n", 'from "node:test"'),
        ("vitest", "a.ts", "import x from 'x';\n", 'from "vitest"'),
        ("jest", "a.js", "import x from 'x';\n", "globalThis.test?."),
        ("mocha", "a.js", "import x from 'x';\n", "import dgm_"),
    ],
)
def test_a_test_file_of_javascript_gets_a_control_in_its_own_style(lay_out, framework, file, text, words):
    control = LANGUAGES[Language.JAVASCRIPT].control
    run = lay_out(
        sandbox_runner.CommandRun, "jest", {file: text}, framework=framework, files=[file], control=control
    )
    ((name, changed),) = run.add_controls()
    assert (name, changed[: len(text)]) == (file, text)
    assert words in changed
    assert f'"{run.mark}_0"' in changed


CPP = LANGUAGES[Language.CPP].control
JVM = LANGUAGES[Language.JVM].control
GOOGLE = "#include <gtest/gtest.h>\nTEST(Half, Four) {}\n"


@pytest.mark.parametrize(
    ("files", "command", "added"),
    [
        ({"a_test.cpp": GOOGLE}, "run", {"a_test.cpp": "TEST(MARK_0, Fails)"}),
        ({"a_test.cpp": GOOGLE}, "ctest", {}),
        ({"a_test.cpp": GOOGLE, "CMakeLists.txt": "gtest_discover_tests(x)\n"}, "ctest",
         {"a_test.cpp": "TEST(MARK_0, Fails)"}),
        ({"a_test.cpp": "#include <other.h>\nTEST(Half, Four) {}\n"}, "run", {}),
        ({"a_test.cpp": '#include "catch.hpp"\nCATCH_TEST_CASE("x") {}\n'}, "run",
         {"a_test.cpp": 'CATCH_TEST_CASE("MARK_0")'}),
        ({"ATest.java": "import org.junit.jupiter.api.*;\nclass ATest extends B {\n}\n"}, "run",
         {"ATest.java": "@org.junit.jupiter.api.Test public void MARK_0()"}),
        ({"ATest.kt": "import kotlin.test.*\nclass ATest {\n}\n"}, "run",
         {"ATest.kt": "@kotlin.test.Test fun MARK_0()"}),
        ({"ATest.java": "class ATest extends TestCase { }\n"}, "run", {"ATest.java": "public void MARK_0()"}),
        ({"ATest.java": "class ATest { }\n"}, "run", {}),
        ({"ATest.java": "import org.junit.*;\n/* class ATest {@link x} */\nclass ATest { void a() { catch () {} } }\n"},
         "run", {"ATest.java": "class ATest { @org.junit.Test public void MARK_0()"}),
    ],
)  # fmt: skip
def test_a_test_file_of_a_known_framework_gets_a_control(
    lay_out, monkeypatch, tmp_path, files, command, added
):
    monkeypatch.setattr(sandbox_runner, "BUILD_FOLDER", str(tmp_path / "build"))
    control = {**CPP, **JVM}
    run = lay_out(
        sandbox_runner.ReportRun, "junit", files, command=[command], restored=["*Test*", "*_test*", "CMakeLists.txt"],
        control=control,
    )  # fmt: skip
    changed = dict(run.add_controls())
    assert changed.keys() == added.keys()
    assert all(added[name].replace("MARK", run.mark) in text for name, text in changed.items())


@pytest.mark.starts_processes
def test_what_a_patch_brings_for_the_jvm_is_removed_and_old_reports_are_none(lay_out, monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox_runner, "BUILD_FOLDER", str(tmp_path / "build"))
    run = lay_out(
        sandbox_runner.ReportRun,
        "junit",
        {"pom.xml": "", "lib/a.jar": "old", "src/a.xml": "<a/>"},
        {"lib/a.jar": "new", "lib/b.jar": "new", "target/x.class": "new", "reports/old.xml": "old"},
        restored=["*.jar"],
        reports=["**/*.xml"],
        command=["sh", "-c", "mkdir -p reports; echo new > reports/new.xml; echo again > reports/again.xml"],
    )
    list(run.add_controls())
    run.task["alone"] = False
    run.run_tests(float("inf"))
    assert sandbox_runner.listed(run.workdir / "lib") == ["a.jar"]
    assert run.read_text("lib/a.jar") == "old"
    assert not (run.workdir / "target").exists()
    assert sorted(text for _, text in run.reports) == ["again\n", "new\n"]


TESTS = """\
#[cfg(test)]
#[allow(dead_code)]
mod tests {
    use super::*;
    #[test]
    fn holds() { assert_eq!(braces("}"), '}'); }
}
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"fn a() {{\n}}\n\n{TESTS}\nfn b() {{}}\n", ["tests"]),
        ('#[cfg(all(test, feature = "std"))]\npub(crate) mod a {\n}\n#[cfg(test)] mod b {}', ["a", "b"]),
        ("mod inner {\n    #[cfg(test)]\n    mod tests {\n    }\n}\n", []),
        ("#[cfg(not(test))]\nmod a {}\n#[cfg(all(not(test), unix))]\nmod b {}\n", []),
        ("// #[cfg(test)] mod c {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod open {\n", []),
    ],
)
def test_modules_of_tests_stand_at_the_top_of_a_file_of_rust(text, names):
    assert [part["name"] for part in RUST_TESTS.finditer(text)] == names


def test_hidden_tests_of_rust_go_behind_the_code_of_the_patch(lay_out):
    hidden = TESTS.replace("holds", "breaks")
    run = lay_out(
        sandbox_runner.CargoRun, "cargo", {"src/lib.rs": f"fn a() {{}}\n\n{TESTS}", "src/b.rs": TESTS},
        {"src/lib.rs": f"eat!(\n{TESTS});\nfn b() {{}}\n"}, {"src/lib.rs": hidden}, parts=["src/lib.rs"],
        control=LANGUAGES[Language.RUST].control,
    )  # fmt: skip
    assert run.read_text("src/lib.rs") == f"eat!(\n);\nfn b() {{}}\n\n{hidden}\n"
    changed = dict(run.add_controls())
    assert f"fn {run.mark}_1()" in changed["src/lib.rs"] and changed["src/lib.rs"].endswith("}\n}\n\n")
    assert [file for file, _ in run.controls] == ["src/b.rs", "src/lib.rs"]


def test_packages_of_go_are_chosen_as_go_does():
    assert sandbox_runner.is_chosen("a/b", [])
    assert sandbox_runner.is_chosen("a/b", ["./..."])
    assert sandbox_runner.is_chosen("a", ["./a/..."])
    assert not sandbox_runner.is_chosen("ab", ["./a/..."])
    assert sandbox_runner.is_chosen(".", ["."])
    assert not sandbox_runner.is_chosen("a", ["."])
    assert not sandbox_runner.is_chosen("a/testdata", [])
    assert not sandbox_runner.is_chosen("_old", ["./..."])
    assert not sandbox_runner.is_chosen(".git", [])
    assert sandbox_runner.is_chosen(".", [])


def test_a_package_of_go_gets_a_control_in_its_own_package(lay_out):
    text = (
        'package sums\n\nimport "testing"\n\nfunc TestHalf(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\n'
    )
    run = lay_out(
        sandbox_runner.GoRun, "go-json", {"sums/a_test.go": text + "func Testify(t *testing.T) {}\n", "a.go": ""},
        control=LANGUAGES[Language.GO].control,
    )  # fmt: skip
    ((name, control),) = run.add_controls()
    assert (Path(name).parent.name, run.tests) == ("sums", {"sums": {"TestHalf": "sums/a_test.go"}})
    assert control.startswith("package sums\n")
    assert f"func Test_{run.mark}_0(t *testing.T)" in control


def test_events_of_go_say_which_tests_began_and_ended():
    events = [
        ("run", "A"),
        ("run", "A/x"),
        ("pass", "A/x"),
        ("pass", "A"),
        ("run", "B"),
        ("fail", "C"),
        ("fail", ""),
    ]
    text = "\n".join(["x", "[]", *(json.dumps({"Action": action, "Test": test}) for action, test in events)])
    assert sandbox_runner.read_go_tests(text.replace(', "Test": ""', "")) == ({"A", "B"}, {"A"}, {"C"})


def test_the_beginning_and_the_end_of_an_output_are_kept(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sandbox_runner, "write", written.write)
    output = sandbox_runner.Output()
    for number in range(20_000):
        output.take(b"%06d\n" % number)
    output.finish()
    text = written.getvalue()
    assert text.startswith(b"000000\n000001\n")
    assert text.endswith(b"019999\n")
    assert len(text) < 2 * sandbox_runner.LOG_HALF + 10


@pytest.mark.skipif(os.getuid() != 0, reason="needs to be root")
def test_it_ends_nothing_as_root(monkeypatch):
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps({**TASK, "alone": True}).encode()))
    )
    with pytest.raises(SystemExit, match="not as root"):
        sandbox_runner.main()


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ({"test": "a", "outcome": "passed"}, True),
        ({"end": True}, True),
        ({"end": True, "test": "a"}, False),
        ({"broken": "a", "test": "a", "outcome": 1}, False),
        ({"foreign": "sums"}, True),
        ({"foreign": "sums (text of a hidden test)"}, False),
        ({"foreign": ["sums"], "end": True}, False),
        ({}, False),
    ],
)
def test_only_whole_lines_of_a_report_count(line, counts):
    assert sandbox_runner.is_outcome(line, ["sums"]) is counts
