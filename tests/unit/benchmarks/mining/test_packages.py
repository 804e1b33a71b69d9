"""Packages for the tests of a commit in Python: by the user's own command, and by uv in a build's sandbox."""

import asyncio
import os

import pytest

from dgm.benchmarks.mining.declarations import Declarations
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.packages import SandboxPython, build_environment
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sandboxes.building import SandboxBuilder
from dgm.toml_files import parse_toml
from tests.support.each_engine import find_engine
from tests.support.folder_builder import FolderBuilder
from tests.support.index_server import IndexServer

PYTHON = SandboxPython("3.11", "x86_64")
PROJECT = """
[project]
name = "sums-kit"
version = "1.2"
[project.scripts]
sums = "sums.main:run"
"""
PUT = """
mkdir -p $DGM_PACKAGES/bin $DGM_PACKAGES/{0}/__pycache__ $DGM_PACKAGES/{0}-1.dist-info $DGM_PACKAGES/lib-2.dist-info
printf 'x = 1' > $DGM_PACKAGES/{0}/__init__.py; printf 'x' > $DGM_PACKAGES/{0}/__pycache__/x.pyc
printf '{0}/__init__.py,,\\n../../bin/y,,\\n' > $DGM_PACKAGES/{0}-1.dist-info/RECORD
printf 'b,,\\nbin/tool,,\\na,,\\n' > $DGM_PACKAGES/lib-2.dist-info/RECORD
mkdir $DGM_PACKAGES/enum34-1.dist-info; printf 'x = 1' > $DGM_PACKAGES/enum.py
printf 'enum.py,,\\n' > $DGM_PACKAGES/enum34-1.dist-info/RECORD
printf '#!/somewhere/python3\\nprint(1)\\n' > $DGM_PACKAGES/bin/tool
"""


def set_up(folder, command, builder=None):
    """Returns the environment that a user's command fills."""
    journal = MiningJournal(folder / "journal.jsonl", {})
    epochs = Epochs(None, folder, PYTHON, journal, builder or FolderBuilder(), command)
    try:
        files = {"pyproject.toml": Entry(PROJECT.encode())}
        return asyncio.run(epochs.environment(files, "2026-01-02"))
    finally:
        journal.close()


@pytest.mark.starts_processes
def test_environment_has_no_copy_of_the_project_or_of_python_and_is_the_same_twice(tmp_path):
    names = {set_up(tmp_path / each, PUT.format("sums_kit")).name for each in "ab"}
    assert len(names) == 1
    made = tmp_path / "a" / "environments" / names.pop()
    found = {path.relative_to(made).as_posix(): path for path in made.rglob("*") if path.is_file()}
    assert "packages/sums_kit/__init__.py" not in found
    assert "packages/enum.py" not in found
    assert found["packages/bin/tool"].read_text() == "#!/usr/bin/env python3\nprint(1)\n"
    assert "from sums.main import run" in found["packages/bin/sums"].read_text()
    assert found["packages/lib-2.dist-info/RECORD"].read_text() == "a,,\nb,,\n"
    assert "Version: 1.2\n" in found["packages/sums_kit-1.2.dist-info/METADATA"].read_text()
    record = parse_toml(found["environment.toml"].read_bytes())
    assert (record["machine"], record["requirements"]) == ("", ["lib==2", "sums_kit==1.2"])


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo no such package >&2; exit 3", "exit status 3: no such package"),
        ("true", r"left nothing in \$DGM_PACKAGES"),
        ("exit 1", "exit status 1; asked for x:1, which is no package index: refused"),
    ],
)
def test_setup_that_fails_says_how(tmp_path, command, message):
    builder = FolderBuilder(refused="asked for x:1, which is no package index: refused" * ("1" in command))
    with pytest.raises(UserError, match=message):
        set_up(tmp_path, command, builder)


@pytest.mark.starts_processes
def test_a_setup_runs_in_a_checkout_and_may_reach_public_addresses(tmp_path):
    builder = FolderBuilder()
    set_up(tmp_path, 'test "$DGM_PYTHON" = 3.11 && cp pyproject.toml "$DGM_PACKAGES"', builder)
    ((_, public),) = builder.ran
    assert public


HOSTILE = (
    "evil @ http:/127.0.0.1:{port}/${{SOME_PROVIDER_KEY}}/evil-1.0-py3-none-any.whl",
    "evil @ http://127.0.0.1:{port}/${{SOME_PROVIDER_KEY}}/evil-1.0-py3-none-any.whl",
    "evil@git+http://127.0.0.1:{port}/${{HOME}}",
    "evil @ file:///etc/passwd",
    "http://127.0.0.1:{port}/${{SOME_PROVIDER_KEY}}",
    "--index-url=http://127.0.0.1:{port}/${{SOME_PROVIDER_KEY}}",
    "-r /etc/passwd",
    "./evil",
)


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_what_is_no_name_is_left_out_and_nothing_is_sent_anywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_PROVIDER_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with IndexServer().serving() as index, IndexServer().serving() as other:
        for name in ("pytest", "coverage", "tiny"):
            index.add_wheel(name)
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
        needed = (*(each.format(port=other.port) for each in HOSTILE), "tiny>=1")
        builder = SandboxBuilder(find_engine("bubblewrap"), {"dgm.run": f"tests-{os.getpid()}"}, "python")
        declared = Declarations(project="sums", needed=needed)
        built = asyncio.run(build_environment(declared, (), "", PYTHON, tmp_path / "suite", builder))
        assert other.asked == []
    folder = tmp_path / "suite" / "environments" / built.name / "packages"
    assert {path.name for path in folder.glob("*.py")} == {"pytest.py", "coverage.py", "tiny.py"}
    assert "without" in built.remark
    assert "secret" not in built.remark
    assert not any("secret" in each for each in index.asked)


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_an_installation_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    builder = SandboxBuilder(find_engine("bubblewrap"), {"dgm.run": f"tests-{os.getpid()}"}, "python")
    with IndexServer().serving() as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        with pytest.raises(CannotInstall, match="pytest was not found"):
            asyncio.run(build_environment(Declarations(), (), "", PYTHON, tmp_path / "suite", builder))
