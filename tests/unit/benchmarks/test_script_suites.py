"""Suites whose tests run by tools of JavaScript: what their files may say."""

import pytest

from dgm.benchmarks.environments import Environment, check_tool, read_environments
from dgm.benchmarks.languages import RUNNERS, Language
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.errors import UserError
from tests.support.folder_sandbox import FolderEngine
from tests.support.named_suite import START, TASK

SUITE = 'name = "s"\ndescription = "d"\nlicense = "MIT"\n'


def write_suite(folder, inner='runner = "node"\n'):
    files = {
        "suite.toml": SUITE,
        f"tasks/{TASK}/task.toml": 'split = "search"\nfail_to_pass = ["test/a.test.js::a > b"]\npass_to_pass = []\n'
        f"[tests]\n{inner}",
        f"tasks/{TASK}/problem.md": "half(4) is 1\n",
        f"tasks/{TASK}/solution.patch": "",
        f"tasks/{TASK}/tests/test/a.test.js": "",
        **{f"tasks/{TASK}/workspace/{name}": text for name, text in START.items()},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def open_suite(folder):
    return SuiteBenchmark(folder, FolderEngine(folder))


def test_a_tool_has_files_of_its_own_that_are_restored(tmp_path):
    inner = 'runner = "jest"\nbuild = ["tsc -p ."]\nflags = ["--import=tsx"]\noptions = ["--config=x"]\n'
    tests = open_suite(write_suite(tmp_path, inner)).record(TASK).tests
    assert (tests.runner, tests.build, tests.flags) == ("jest", ("tsc -p .",), ("--import=tsx",))
    assert (tests.options, tests.restored, tests.files) == (
        ("--config=x",),
        RUNNERS["jest"].restored,
        ("test/a.test.js",),
    )


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ('runner = "tape"\n', "runner"),
        (
            'runner = "pytest"\nbuild = ["make"]\n',
            "tests.build: is not for pytest; it belongs to node, vitest, jest, mocha",
        ),
        ('runner = "pytest"\nflags = ["-x"]\n', "tests.flags: is not for pytest"),
        ('runner = "command"\n', "tests.command"),
        ('runner = "command"\ncommand = " "\n', "tests.command: is empty"),
        ('runner = "command"\ncommand = "x"\nbuild = ["x"]\n', "tests.build: is not for command"),
        ('runner = "command"\ncommand = "x"\nparts = ["../x"]\n', "tests.parts: '../x' is not a path"),
        ('runner = "jest"\ncommand = "x"\n', "tests.command: is for runner = 'command' or 'report' only"),
    ],
)
def test_what_a_runner_does_not_know_is_refused(tmp_path, inner, message):
    with pytest.raises(UserError, match=message):
        open_suite(write_suite(tmp_path, inner))


def test_another_tool_is_another_version(tmp_path):
    one = open_suite(write_suite(tmp_path / "one")).version
    assert open_suite(write_suite(tmp_path / "two", 'runner = "vitest"\n')).version != one
    assert open_suite(write_suite(tmp_path / "three")).version == one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('node = "v20"\n', "'v20' is not a version such as '20'"),
        ('node = "20"\npython = "3.11"\n', "keep one of command, python, node, go"),
        ('command = true\nnode = "20"\n', "keep one of command, python, node, go"),
        ('go = "go1.19"\n', "'go1.19' is not a version such as '1.23'"),
        ('go = "1.19"\npython = "3.11"\n', "keep one of command, python, node, go"),
        ("", "python"),
    ],
)
def test_an_environment_is_for_one_program(tmp_path, text, message):
    place = tmp_path / "environments" / ("0" * 16)
    (place / "packages").mkdir(parents=True)
    (place / "environment.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        read_environments(tmp_path)


@pytest.mark.parametrize(
    ("found", "message"),
    [(("18", "x86_64"), "made for node 20, but"), (("20", "aarch64"), "machine code for x86_64")],
)
def test_packages_for_another_node_or_machine_are_refused(tmp_path, found, message):
    environment = Environment(
        "0" * 16, tmp_path / "packages", Language.JAVASCRIPT, "20", "x86_64", (".",), ()
    )
    check_tool(environment, ("20", "x86_64"), "node")
    with pytest.raises(UserError, match=message):
        check_tool(environment, found, "node")
