"""What ``pytest --fast`` leaves out and refuses, seen from inside of a run of its own."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.starts_processes

TESTS = """
import asyncio, os, subprocess, sys, threading
import pytest

def hidden():
    try:
        subprocess.run([sys.executable, "--version"])
    except Exception:
        pass

@pytest.fixture
def served():
    hidden()

def test_plain(): pass
def test_popen(): subprocess.run([sys.executable, "--version"])
def test_hidden(): hidden()
def test_fork(): os.fork() or os._exit(0)
def test_spawn(): os.posix_spawn(sys.executable, [sys.executable, "--version"], {})
def test_asyncio(): asyncio.run(asyncio.create_subprocess_exec(sys.executable, "--version"))
def test_shell(): os.system("true")
def test_fixture(served): pass
def test_another_thread():
    thread = threading.Thread(target=hidden)
    thread.start()
    thread.join()
def test_after_it(): pass

@pytest.mark.starts_processes
def test_marked(): hidden()
@pytest.mark.slow
def test_slow(): pass
"""
REFUSED = ("popen", "hidden", "fork", "spawn", "asyncio", "shell", "another_thread", "fixture")


def run_pytest(*words, choice="--fast"):
    """Return what pytest prints."""
    command = [sys.executable, "-m", "pytest", choice, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The message of each test that ran with ``--fast``; none if it passed."""
    folder = tmp_path_factory.mktemp("fast")
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    starts_processes\n    slow\n")
    log = folder / "log.xml"
    run_pytest("-p", "tests.conftest", "-c", folder / "pytest.ini", "--junit-xml", log, folder)
    return {
        case.attrib["name"].removeprefix("test_"): "".join(part.attrib["message"] for part in case)
        for case in ElementTree.parse(log).iter("testcase")
    }


@pytest.mark.parametrize("name", REFUSED)
def test_a_start_fails_its_test_even_where_the_code_hides_it(outcomes, name):
    assert "starts a process (" in outcomes[name]
    assert "mark it with starts_processes" in outcomes[name]


def test_others_run_and_marked_ones_are_left_out(outcomes):
    assert {name for name, message in outcomes.items() if not message} == {"plain", "after_it"}
    assert set(outcomes) == {"plain", "after_it", *REFUSED}


def test_only_unit_and_property_tests_are_collected():
    found = run_pytest("--collect-only", "-q", "tests/e2e/test_simulate.py", "tests/unit/models/test_keys.py")
    assert "tests/unit/models/test_keys.py::" in found
    assert "tests/e2e" not in found


def test_not_fast_runs_the_others():
    found = run_pytest(
        "--collect-only",
        "-q",
        "tests/e2e/test_money.py",
        "tests/unit/archive/test_tree.py",
        "tests/unit/search/test_loop.py",
        choice="--not-fast",
    )
    assert "tests/e2e/test_money.py::" in found
    assert "tests/unit/search/test_loop.py::" in found
    assert "tests/unit/archive/test_tree.py" not in found
