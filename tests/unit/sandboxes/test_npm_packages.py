"""Packages of npm are those of a registry, installed once and without their scripts."""

import json

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.npm_locks import check_lock
from dgm.sandboxes.npm_packages import ensure_npm_packages

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


def test_without_npm_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"npm is not installed: install Node.js with npm"):
        ensure_npm_packages(source())


@pytest.mark.starts_processes
def test_npm_is_run_once_and_never_runs_scripts(tmp_path, monkeypatch):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text('#!/bin/sh\necho "$*" >>"$(dirname "$0")/ran"\n/bin/mkdir -p node_modules/a\n')
    npm.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")
    folder = ensure_npm_packages(source(), "aarch64")
    assert ensure_npm_packages(source(), "aarch64") == folder
    assert (folder / "a").is_dir()
    (ran,) = (npm.parent / "ran").read_text().splitlines()
    assert ran.startswith("ci --ignore-scripts ")
    assert ran.endswith("--cpu=arm64")
