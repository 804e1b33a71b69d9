"""Packages of npm are installed once and without their scripts; a failure names what was refused."""

import asyncio
import json
import os
import shutil

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.packages import drop_missing_options, ensure_npm_packages, first_error
from tests.support.each_engine import find_engine
from tests.support.folder_builder import FolderBuilder

GOOD = {
    "version": "1.0.0",
    "resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
    "integrity": "sha512-x",
}


def lock(**packages):
    entries = {"": {"name": "mine"}} | {f"node_modules/{name}": entry for name, entry in packages.items()}
    return json.dumps({"lockfileVersion": 3, "packages": entries}).encode()


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b'{"lockfileVersion": 1}', b'{"packages": {"a": 1}}'])
def test_a_lock_that_cannot_be_read_is_refused(data):
    with pytest.raises(UserError, match=r"package-lock.json: .*make it anew"):
        drop_missing_options(data)


def test_optional_packages_that_the_registry_did_not_have_are_left_out():
    """``npm ci`` refuses a lock that names them without an entry."""
    main = {**GOOD, "optionalDependencies": {"a-linux": "1.0.0", "a-windows": "1.0.0"}}
    locked = {"a": main, "b/node_modules/a-linux": GOOD, "c": {**GOOD, "dependencies": {"d": "1"}}}
    expected = lock(**{**locked, "a": {**main, "optionalDependencies": {"a-linux": "1.0.0"}}})
    assert json.loads(drop_missing_options(lock(**locked))) == json.loads(expected)


def source():
    return {"package.json": Entry(b"{}"), "package-lock.json": Entry(lock())}


@pytest.mark.parametrize("word", ["npm error", "npm ERR!"])
def test_the_reason_is_the_line_that_explains(word):
    lines = [
        "npm warn old",
        f"{word} code ENOENT",
        f"{word} syscall open",
        f"{word} enoent no such file",
        word,
    ]
    assert first_error("\n".join(lines)) == "enoent no such file"
    assert first_error("odd") == "odd"
    assert first_error("") == "npm failed"


@pytest.mark.starts_processes
def test_npm_is_run_once_and_never_runs_scripts(tmp_path, monkeypatch):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\ntest -f package-lock.json && mkdir -p node_modules/a\n")
    npm.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    builder = FolderBuilder(PATH=f"{npm.parent}:/usr/bin:/bin")
    folders = [asyncio.run(ensure_npm_packages(source(), builder, "aarch64")) for _ in range(2)]
    assert folders[0] == folders[1]
    assert (folders[0] / "a").is_dir()
    ((words, public),) = builder.ran
    assert "--ignore-scripts" in words
    assert words[-1] == "--cpu=arm64"
    assert not public


@pytest.mark.starts_processes
def test_a_failure_of_npm_names_what_it_was_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "npm").write_text(
        "#!/bin/sh\necho npm error code E403\necho npm error 403 Forbidden\nexit 1\n"
    )
    (tmp_path / "npm").chmod(0o755)
    builder = FolderBuilder(PATH=f"{tmp_path}:/usr/bin:/bin", refused="asked for evil.example:443: refused")
    message = r"^package-lock.json: cannot be installed: 403 Forbidden; asked for evil.example:443: refused$"
    with pytest.raises(UserError, match=message):
        asyncio.run(ensure_npm_packages(source(), builder))


ELSEWHERE = {
    "file:/etc/hostname.tgz": "ENOENT",
    "http://127.0.0.1:9/a.tgz": "asked for 127.0.0.1:9, which is no package index: refused",
    "git+https://example.org/a.git#0123456789012345678901234567890123456789": "asked for example.org:443",
}


@pytest.mark.sandbox
@pytest.mark.starts_processes
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
@pytest.mark.parametrize("address", ELSEWHERE)
def test_a_lock_that_leads_elsewhere_gets_nothing_there(address, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    needs = {"dependencies": {"a": address}}
    packages = {"": needs, "node_modules/a": {"version": "1.0.0", "resolved": address}}
    files = {
        "package.json": Entry(json.dumps(needs).encode()),
        "package-lock.json": Entry(json.dumps({"lockfileVersion": 3, "packages": packages}).encode()),
    }
    builder = SandboxBuilder(find_engine("bubblewrap"), {"dgm.run": f"tests-{os.getpid()}"}, "npm")
    with pytest.raises(UserError) as failure:
        asyncio.run(ensure_npm_packages(files, builder))
    assert ELSEWHERE[address] in str(failure.value)
