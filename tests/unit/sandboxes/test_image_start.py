"""The programs that an image lacks, as the start script reports them; it is run on folders of commands."""

import json
import shutil
import subprocess
import sys
from importlib.resources import files

import pytest

pytestmark = pytest.mark.starts_processes

NEEDED = ("python3", "git", "tar", "find", "cp", "mkdir", "chmod", "head", "mktemp")
OLD_PYTHON = """#!/bin/sh
case "$3" in *exit*) exit 1 ;; *) echo "python3 is 3.8" ;; esac
"""


def lacks(folder):
    script = files("dgm.sandboxes").joinpath("image_start.sh").read_text(encoding="utf-8")
    # Its own search path would lead to the programs of this machine.
    script = script.replace("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "/nonexistent", 1)
    done = subprocess.run(
        [shutil.which("sh"), "-c", script, "start", "9", "print('{}')"],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout).get("lacks")


@pytest.fixture
def commands(tmp_path):
    for name in NEEDED:
        (tmp_path / name).symlink_to(sys.executable if name == "python3" else shutil.which(name))
    (tmp_path / "timeout").symlink_to(shutil.which("timeout"))
    return tmp_path


def test_the_program_runs_where_all_is_there(commands):
    assert lacks(commands) is None


@pytest.mark.parametrize("missing", [("git",), ("python3", "tar", "find")])
def test_all_that_is_missing_is_named(commands, missing):
    for name in missing:
        (commands / name).unlink()
    assert lacks(commands) == ", ".join(missing)


def test_an_old_python_is_named_with_its_version(commands):
    (commands / "python3").unlink()
    (commands / "python3").write_text(OLD_PYTHON)
    (commands / "python3").chmod(0o755)
    assert lacks(commands) == "Python 3.9 (python3 is 3.8)"


@pytest.mark.parametrize(("name", "said"), [("tar", "GNU tar"), ("find", "GNU find")])
def test_a_program_without_the_options_is_not_enough(commands, name, said):
    (commands / name).unlink()
    (commands / name).symlink_to(shutil.which("false"))
    assert lacks(commands) == said
