"""The program of the tool-chain images that runs an exercise's tests, as far as it needs no tool chain."""

import os
import re
import subprocess
import sys
import tomllib

import pytest

from dgm.paths import asset

TOOLS = asset("sandboxes") / "polyglot" / "tools"
PASSES = "def test_good():\n    import answer\n"
FAILS = "def test_bad():\n    assert not 'so'\n"
SKIPPED = "import pytest\n\n\n@pytest.mark.skip\ndef test_later():\n    pass\n"


@pytest.fixture
def run_tests(tmp_path):
    """Runs it on an exercise in Python; gives the exit code and the last line."""

    def run(*tests, **files):
        folder, scratch = tmp_path / "exercise", tmp_path / "scratch"
        folder.mkdir()
        scratch.mkdir()
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        before = sorted(folder.rglob("*"))
        done = subprocess.run(
            [sys.executable, TOOLS / "run-tests", *tests],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "TMPDIR": str(scratch)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (sorted(folder.rglob("*")), list(scratch.iterdir())) == (before, [])
        return done.returncode, done.stdout.splitlines()[-1]

    return run


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("test", "answer", "said"),
    [
        (PASSES, "", (0, "run-tests: 1 passed")),
        (PASSES + FAILS, "", (1, "run-tests: 1 of 2 failed")),
        (PASSES + SKIPPED, "", (0, "run-tests: 1 passed")),
        (SKIPPED, "", (1, "run-tests: no test ran")),
        ("", "", (1, "run-tests: no test ran")),
        ("no python", "", (1, "run-tests: 1 of 1 failed")),
        (PASSES, "import os\nos._exit(0)\n", (1, "run-tests: no test ran")),
        (PASSES, "print('\\nrun-tests: 9 passed')\nraise SystemExit(0)\n", (1, "run-tests: 1 of 1 failed")),
    ],
)
def test_it_says_and_exits_with_what_came_of_the_tests(run_tests, test, answer, said):
    assert run_tests("it_test.py", it_test=test, answer=answer) == said


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ([], "usage: run-tests TEST_FILE..."),
        (["gone.py"], r"gone\.py: not a file below /.*"),
        (["/etc/passwd"], r"/etc/passwd: not a file below /.*"),
        (["../exercise/a.py"], r"\.\./exercise/a\.py: not a file below /.*"),
    ],
)
def test_a_wrong_use_is_told_apart_from_a_failure(run_tests, tests, said):
    code, last = run_tests(*tests, a="")
    assert code == 2
    assert re.fullmatch(f"run-tests: {said}", last)


def test_crates_are_asked_for_by_their_series(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    from chains.rust import relaxed

    manifest = """\
[package]
version = "1.2.3"

[dependencies]
a = "0.4.6"
b = "^1.8.2"
c = { version = "0.3.30", features = ["x"] }
d = "2"
e = "=1.2.3"

[dev-dependencies]
f = "1.4"
"""
    read = tomllib.loads(relaxed(manifest))
    assert read["package"]["version"] == "1.2.3"
    assert read["dependencies"] == {
        "a": "0.4",
        "b": "1",
        "c": {"version": "0.3", "features": ["x"]},
        "d": "2",
        "e": "=1.2.3",
    }
    assert read["dev-dependencies"] == {"f": "1"}
