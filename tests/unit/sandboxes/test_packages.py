"""For which Python and platform an agent's packages are installed, and that they are installed once."""

import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.sandboxes.packages import ensure_packages
from dgm.sandboxes.preparing import LOGGER
from dgm.sandboxes.sandbox_python import SandboxPython
from dgm.sandboxes.wheels import free_script

OURS = SandboxPython("3.11", "x86_64", "glibc", "2.36")
OTHERS = SandboxPython("3.12", "x86_64", "glibc", "2.36")


def test_wheels_are_for_the_sandbox_and_not_for_this_machine():
    tags = SandboxPython("3.11", "aarch64", "glibc", "2.36").platforms
    assert tags[0] == "manylinux_2_36_aarch64"
    assert "manylinux_2_17_aarch64" in tags
    assert "manylinux2014_aarch64" in tags
    assert all(tag.endswith("_aarch64") for tag in tags)


def test_another_c_library_has_wheels_of_its_own():
    tags = SandboxPython("3.11", "x86_64", "musl", "1.2.4").platforms
    assert tags == ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64", "musllinux_1_0_x86_64", "linux_x86_64"]


def test_an_unknown_c_library_takes_none_that_need_one():
    assert SandboxPython("3.11", "x86_64").platforms == ["linux_x86_64"]


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that is all that pip finds packages in, and a cache of one's own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def make_wheel(folder, name, version, needs=""):
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = {version!r}\ndef tell(): print(VERSION)\n")
        required = f"Requires-Dist: {needs}\n" if needs else ""
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:tell\n")
        wheel.writestr(f"{info}/RECORD", "")
    return file


@pytest.mark.starts_processes
def test_packages_are_installed_once_and_wheels_are_kept_for_other_pythons(index, tmp_path, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    make_wheel(index, "tiny", "1.0", needs="tinier")
    needed = make_wheel(index, "tinier", "2.0")
    content = needed.read_bytes()
    folder = ensure_packages(("tiny",), OURS)
    assert {path.name for path in folder.glob("*.py")} == {"tiny.py", "tinier.py"}
    assert (folder / "bin" / "tiny").read_text().startswith("#!/usr/bin/env python3\n")
    env = {"PYTHONPATH": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = subprocess.run([folder / "bin" / "tiny"], env=env, capture_output=True, text=True, check=True)
    assert said.stdout == "1.0\n"
    assert "packages for Python 3.11: downloading 2 of 2 packages" in caplog.messages
    caplog.clear()
    needed.unlink()
    assert ensure_packages(("tiny",), OURS) == folder
    assert not caplog.messages
    needed.write_bytes(content)
    other = ensure_packages(("tiny",), OTHERS)
    assert other != folder
    assert (other / "tinier.py").exists()
    assert not any("downloading" in message for message in caplog.messages)
    assert len(list((tmp_path / "cache" / "dgm" / "wheels").glob("*/*.whl"))) == 2


@pytest.mark.starts_processes
def test_a_package_that_is_not_to_be_had_is_said(index):
    with pytest.raises(UserError, match=r"agent.toml: requires = \['nothere'\]: cannot be installed: ERROR"):
        ensure_packages(("nothere",), OURS)


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
