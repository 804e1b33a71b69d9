"""For which Python and platform an agent's packages are installed, and that they are installed once."""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, SandboxSpec
from dgm.sandboxes.packages import SandboxPython, ensure_packages, find_python, free_script
from dgm.sandboxes.preparing import LOGGER
from tests.support.each_engine import find_engine
from tests.support.index_server import IndexServer

SPEC = SandboxSpec("python", {"dgm.run": f"tests-{os.getpid()}"})
OTHERS = SandboxPython("3.14", "x86_64", "glibc", "2.36")


@pytest.mark.parametrize(
    ("libc", "version", "platform"),
    [
        ("glibc", "2.36", "x86_64-manylinux_2_36"),
        ("glibc", "2.30", "x86_64-manylinux_2_28"),
        ("glibc", "2.99", "x86_64-manylinux_2_40"),
        ("glibc", "2.5", "x86_64-manylinux_2_17"),
        ("musl", "1.2.4", "x86_64-unknown-linux-musl"),
        ("", "", "x86_64-manylinux_2_17"),
    ],
)
def test_wheels_are_for_the_sandboxs_c_library(libc, version, platform):
    assert SandboxPython("3.11", "x86_64", libc, version).platform == platform


class Answering:
    """Opens sandboxes whose ``python3`` prints this."""

    def __init__(self, output):
        self.output = output

    @contextlib.asynccontextmanager
    async def open(self, _spec):
        yield self

    async def exec(self, _argv, *, timeout_s):
        return Completed(0 if self.output else 127, self.output)


def test_a_sandbox_is_asked_for_its_python():
    said = asyncio.run(find_python(Answering(b"3.12 x86_64 glibc 2.39\n"), SPEC))
    assert said == SandboxPython("3.12", "x86_64", "glibc", "2.39")
    assert asyncio.run(find_python(Answering(b"3.13 x86_64\n"), SPEC)) == SandboxPython("3.13", "x86_64")
    with pytest.raises(Infrastructure, match="the sandbox image python has no python3"):
        asyncio.run(find_python(Answering(b""), SPEC))


@pytest.fixture
def index(tmp_path, monkeypatch):
    """All that uv finds packages in, and a cache of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with IndexServer().serving() as server:
        monkeypatch.setenv("PIP_INDEX_URL", server.url)
        yield server


def ensure(*requires, python=None):
    async def run():
        engine = find_engine("bubblewrap")
        return await ensure_packages(requires, python or await find_python(engine, SPEC), engine, SPEC)

    return asyncio.run(run())


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_packages_are_installed_once_and_stay_the_same(index, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    index.add_wheel("tiny", needs=["tinier"])
    index.add_wheel("tinier", "2.0")
    folder = ensure("tiny")
    assert {path.name for path in folder.glob("*.py")} == {"tiny.py", "tinier.py"}
    assert list(folder.glob("__pycache__/tiny.*.pyc"))
    assert (folder / "bin" / "tiny").read_text().startswith("#!/usr/bin/env python3\n")
    env = {"PYTHONPATH": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run([folder / "bin" / "tiny"], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n"
    assert "installing tiny" in caplog.messages[0]
    caplog.clear()
    index.add_wheel("tiny", "3.0")
    assert ensure("tiny") == folder
    assert not caplog.messages
    other = ensure("tiny", python=OTHERS)
    assert other != folder
    assert not list(other.rglob("*.pyc"))


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_a_package_that_is_not_to_be_had_is_named(index):
    with pytest.raises(
        UserError, match=r"agent.toml: requires = \['nothere'\]: cannot be installed: .*nothere"
    ):
        ensure("nothere")


@pytest.mark.parametrize(
    "requirement",
    [
        "evil @ http:/127.0.0.1:1/${SOME_KEY}",
        "evil@file:///etc/passwd",
        "git+https://evil.example/x",
        "./evil",
        "/evil",
        "--index-url=http://evil.example",
        "-r requirements.txt",
        "",
    ],
)
def test_what_is_no_name_is_refused(requirement):
    with pytest.raises(UserError, match=r"agent.toml: requires: .* is no package such as"):
        asyncio.run(ensure_packages(("tiny", requirement), OTHERS, None, SPEC))


def test_a_command_with_a_path_too_long_for_the_kernel_is_freed_as_well(tmp_path):
    script = tmp_path / "tiny"
    long = f"/{'a' * 200}/python3.11"
    quotes = "'" * 3
    script.write_text(f'#!/bin/sh\n{quotes}exec\' "{long}" "$0" "$@"\n\' {quotes}\nimport tiny\n')
    free_script(script)
    assert script.read_text() == "#!/usr/bin/env python3\nimport tiny\n"


def test_a_command_that_is_no_python_stays_as_it_is(tmp_path):
    script = tmp_path / "tool"
    script.write_bytes(b"\x7fELF python\n")
    free_script(script)
    assert script.read_bytes() == b"\x7fELF python\n"
