"""Packages of npm are those of a registry, installed once and without their scripts."""

import asyncio
import json

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sandboxes.npm_locks import (
    check_lock,
    check_manifest,
    drop_missing_options,
    first_error,
    keep_registry_specs,
)
from dgm.sandboxes.packages import ensure_npm_packages
from tests.support.folder_builder import FolderBuilder

GOOD = {
    "version": "1.0.0",
    "resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
    "integrity": "sha512-x",
}
BUNDLER = {**GOOD, "bundleDependencies": ["b"]}
INSIDE = {"version": "1.0.0", "inBundle": True}


def lock(**packages):
    entries = {"": {"name": "mine"}} | {f"node_modules/{name}": entry for name, entry in packages.items()}
    return json.dumps({"lockfileVersion": 3, "packages": entries}).encode()


def without(name):
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user with registries of their own."""
    (tmp_path / ".npmrc").write_text("//r:_authToken=x\n@ours:registry = https://npm.example/ours/\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NPM_CONFIG_USERCONFIG", raising=False)
    monkeypatch.setenv("npm_config_registry", "http://localhost:4873/")


@pytest.mark.parametrize(
    "packages",
    [
        {"a": GOOD},
        {"a": without("resolved")},
        {"a": {**GOOD, "name": "@x/b"}, "@x/a/node_modules/b": GOOD},
        {"a": {**GOOD, "resolved": "http://localhost:4873/a.tgz"}},
        {"@ours/a": {**GOOD, "resolved": "https://npm.example/ours/a.tgz"}},
        {"a": BUNDLER, "a/node_modules/b": INSIDE, "a/node_modules/b/node_modules/c": INSIDE},
    ],
)
def test_packages_of_a_registry_pass(packages):
    check_lock(lock(**packages))


@pytest.mark.parametrize(
    "entry",
    [
        {"resolved": "../outside", "link": True},
        {**GOOD, "link": True},
        {**GOOD, "resolved": "git+ssh://git@example/a.git#1"},
        {**GOOD, "resolved": "file:a.tgz"},
        {**GOOD, "resolved": "file:///root/private.tgz", "inBundle": True},
        {**GOOD, "resolved": "http://registry.npmjs.org/a.tgz"},
        {**GOOD, "resolved": "https://elsewhere.example/a.tgz"},
        {**GOOD, "resolved": "https://registry.npmjs.org@elsewhere.example/a.tgz"},
        {**GOOD, "resolved": "https://registry.npmjs.org.elsewhere.example/a.tgz"},
        {**GOOD, "resolved": "https://registry.npmjs.org\\@elsewhere.example/a.tgz"},
        {**GOOD, "resolved": False},
        without("integrity"),
        without("version"),
        INSIDE,
        {**without("resolved"), "version": "file:/root/private.tgz"},
        {**without("resolved"), "version": "github:x/y"},
        {**without("resolved"), "name": "b@file:/root/private.tgz"},
        "a",
    ],
)
def test_a_lock_that_leads_elsewhere_is_refused(entry):
    with pytest.raises(UserError, match=r"package-lock.json: node_modules/a: only packages of a registry"):
        check_lock(lock(a=entry))


@pytest.mark.parametrize("place", ["packages/a", "../a", "node_modules/a@file:/root", "node_modules/../a"])
def test_an_entry_outside_of_the_packages_is_refused(place):
    data = json.dumps({"packages": {"": {}, place: GOOD}}).encode()
    with pytest.raises(UserError, match=r"package-lock.json: .*: only packages of a registry"):
        check_lock(data)


SPECS = ["^1.2", "1 - 2 || >=3.0.0-rc.1", "*", "", "latest", "npm:b@^1", "npm:@x/b"]
FOREIGN = [
    "file:../a", "link:../a", "workspace:*", "portal:../a", "git+https://example.org/a", "github:x/y", "x/y", "x/y#v1",
    "https://example.org/a.tgz", "http:/example.org/a", "git@example.org:x/y", "..", ".", "~/a", "/root/a", "C:\\a",
    "a.tgz", "a.TAR.GZ", "npm:file:a", "npm:b@file:a", "npm:b@x/y", "${HOME}", "catalog:", 7, None, {"x": "1"}, ["1"],
]  # fmt: skip


def test_versions_of_a_registry_are_kept_and_all_else_is_left_out():
    named = {f"a{number}": spec for number, spec in enumerate([*SPECS, *FOREIGN[:-2], FOREIGN[-1]])}
    kept, foreign = keep_registry_specs(named)
    assert list(kept.values()) == SPECS
    assert foreign == [name for name in named if name not in kept]


@pytest.mark.parametrize("spec", [spec for spec in FOREIGN if not isinstance(spec, dict)])
def test_what_overrides_hold_at_any_depth_is_left_out(spec):
    table = {"b": {".": "1", "c@^2": {"d": spec, "e": "$b"}}, "f@file:x": "1", "g": "2"}
    kept, foreign = keep_registry_specs(table, {"g"})
    assert (kept, foreign) == ({"b": {".": "1", "c@^2": {"e": "$b"}}}, ["d", "f@file:x", "g"])
    for key in ("dependencies", "optionalDependencies"):
        with pytest.raises(UserError, match=r"package.json: a: only packages of a registry"):
            check_manifest(json.dumps({key: {"a": spec}, "overrides": {}}).encode())


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b'{"lockfileVersion": 1}'])
def test_what_is_no_lock_is_said(data):
    with pytest.raises(UserError, match=r"package-lock.json: .*make it anew"):
        check_lock(data)


def test_optional_packages_that_the_registry_did_not_have_are_left_out():
    """``npm ci`` refuses a lock that names them without an entry."""
    main = {**GOOD, "optionalDependencies": {"a-linux": "1.0.0", "a-windows": "1.0.0"}}
    locked = {"a": main, "b/node_modules/a-linux": GOOD, "c": {**GOOD, "dependencies": {"d": "1"}}}
    found = json.loads(drop_missing_options(lock(**locked)))
    assert found == json.loads(
        lock(**{**locked, "a": {**main, "optionalDependencies": {"a-linux": "1.0.0"}}})
    )


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
