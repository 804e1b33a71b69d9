"""Packages of npm are those of a registry, installed once and without their scripts."""

import asyncio
import json

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.npm_locks import check_lock, first_error
from dgm.sandboxes.npm_packages import ensure_npm_packages
from tests.support.folder_builder import FolderBuilder

GOOD = {"resolved": "https://registry.example/a/-/a-1.0.0.tgz", "integrity": "sha512-x"}


def lock(**packages):
    entries = {"": {"name": "mine"}} | {f"node_modules/{name}": entry for name, entry in packages.items()}
    return json.dumps({"lockfileVersion": 3, "packages": entries}).encode()


@pytest.mark.parametrize("entry", [GOOD, {"integrity": "sha512-x"}, {"inBundle": True}])
def test_packages_of_a_registry_pass(entry):
    check_lock(lock(a=entry))


@pytest.mark.parametrize(
    "entry",
    [
        {"resolved": "../outside", "link": True},
        {"resolved": "git+ssh://git@example/a.git#1", "integrity": "sha512-x"},
        {"resolved": "file:a.tgz", "integrity": "sha512-x"},
        {"resolved": "https://example/a.tgz"},
        "a",
    ],
)
def test_a_lock_that_leads_elsewhere_is_refused(entry):
    with pytest.raises(UserError, match=r"package-lock.json: node_modules/a: only packages of a registry"):
        check_lock(lock(a=entry))


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b'{"lockfileVersion": 1}'])
def test_what_is_no_lock_is_said(data):
    with pytest.raises(UserError, match=r"package-lock.json: .*make it anew"):
        check_lock(data)


def source():
    return {"package.json": Entry(b"{}"), "package-lock.json": Entry(lock())}


@pytest.mark.parametrize("word", ["npm error", "npm ERR!"])
def test_the_reason_is_what_tells_something(word):
    lines = [
        "npm warn old",
        f"{word} code ENOENT",
        f"{word} syscall open",
        f"{word} enoent no such file",
        f"{word} more",
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
def test_a_failure_of_npm_is_told_with_what_it_was_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "npm").write_text(
        "#!/bin/sh\necho npm error code E403\necho npm error 403 Forbidden\nexit 1\n"
    )
    (tmp_path / "npm").chmod(0o755)
    builder = FolderBuilder(PATH=f"{tmp_path}:/usr/bin:/bin", refused="asked for evil.example:443: refused")
    message = r"^package-lock.json: cannot be installed: 403 Forbidden; asked for evil.example:443: refused$"
    with pytest.raises(UserError, match=message):
        asyncio.run(ensure_npm_packages(source(), builder))
