"""Packages that are installed for a commit in JavaScript."""

import asyncio
import json

import pytest

from dgm.benchmarks.environments import PACKAGES, environment_digest, read_environments
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.languages import Language
from dgm.benchmarks.mining.node_packages import (
    NodeEpochs,
    build_node_environment,
    find_blamed,
    keep_modules,
    read_declared,
    without,
)
from dgm.benchmarks.mining.packages import SandboxPython
from dgm.benchmarks.mining.scan import code_words
from dgm.domain import Entry
from dgm.errors import UserError
from tests.support.folder_builder import FolderBuilder

NODE = ("20", "x86_64")


def files(**more):
    return {"package.json": Entry(json.dumps({"name": "sums", **more}).encode())}


def set_up(folder, command):
    journal = MiningJournal(folder / "journal.jsonl", {})
    epochs = NodeEpochs(None, folder, SandboxPython(*NODE), journal, FolderBuilder(), command)
    try:
        return asyncio.run(epochs.environment(files(), "2026-01-02"))
    finally:
        journal.close()


NPM = """#!/bin/sh
case "$(cat package.json)" in *old*) echo "npm error notarget No matching version found for old@1" >&2; exit 1;; esac
mkdir -p node_modules/dep
"""


@pytest.mark.starts_processes
def test_scripts_never_run_and_a_package_that_is_not_to_be_had_is_left_out(tmp_path):
    (tmp_path / "npm").write_text(NPM)
    (tmp_path / "npm").chmod(0o755)
    builder = FolderBuilder(PATH=f"{tmp_path}:/usr/bin:/bin")
    given = files(dependencies={"dep": "1"}, devDependencies={"old": "1"})
    built = asyncio.run(build_node_environment(given, "2026-01-02", NODE, tmp_path / "suite", builder))
    assert built.remark == "without old"
    assert all("--ignore-scripts" in words and not public for words, public in builder.ran)
    assert "--before=2026-01-02T23:59:59Z" in builder.ran[0][0]
    assert "--cpu=x64" in builder.ran[0][0]


def test_packages_that_no_registry_has_are_left_out():
    declared, foreign = read_declared(
        files(
            dependencies={"a": "^1", "b": "github:x/y", "c": "npm:d@1"},
            devDependencies={"e": "file:../e", "f": "*"},
        )
    )
    assert declared == {"dependencies": {"a": "^1", "c": "npm:d@1"}, "devDependencies": {"f": "*"}}
    assert foreign == ["b", "e"]


def test_packages_of_the_repository_itself_are_never_asked_for():
    manifest = files(
        dependencies={"page": "^1", "kept": "^1", "@ours/x": "1", "@theirs/x": "1"},
        workspaces=["packages/*"],
        overrides={"page": "2"},
    )
    for path, name in {"packages/x": "page", "node_modules/y": "kept"}.items():
        manifest[f"{path}/package.json"] = Entry(json.dumps({"name": name}).encode())
    manifest[".npmrc"] = Entry(b"x=y\n@ours:registry=https://npm.example/\n")
    declared = {"dependencies": {"kept": "^1", "@theirs/x": "1"}, "overrides": {}}
    assert read_declared(manifest) == (declared, ["@ours/x", "page"])


@pytest.mark.parametrize(
    ("said", "blamed"),
    [
        ("npm error notarget No matching version found for eslint-x@^0.6.2 with a date before", "eslint-x"),
        ("npm error 404  The requested resource '@a/b@https://r/b.tgz' could not be found", "@a/b"),
        ("npm error notarget No matching version found for vitest@^9.", ""),
        ("npm error notarget No matching version found for needed@^9.", ""),
        ("npm error ERESOLVE", ""),
    ],
)
def test_only_packages_for_development_are_blamed(said, blamed):
    assert find_blamed(said, {"eslint-x": "1", "@a/b": "1", "vitest": "9"}) == blamed


def test_blamed_packages_are_taken_out_of_all_tables():
    assert without({"a": {"x": "1", "y": "1"}, "b": {"x": "1"}}, ["x"]) == {"a": {"y": "1"}, "b": {}}


@pytest.mark.starts_processes
def test_an_environment_has_no_copy_of_the_project_and_the_same_digest_each_time(tmp_path):
    command = (
        'for each in sums dep dep/node_modules/sums; do mkdir -p "$DGM_PACKAGES/$each"; '
        'echo \'{"name": "dep", "version": "1.2.3"}\' > "$DGM_PACKAGES/$each/package.json"; done'
    )
    built = [set_up(tmp_path / each, command) for each in ("one", "two")]
    assert built[0].name == built[1].name
    found = read_environments(tmp_path / "one")[built[0].name]
    assert (found.node, found.python, found.machine, found.requirements) == ("20", "", "", ("dep@1.2.3",))
    assert environment_digest(found.packages.parent).startswith(built[0].name)
    assert sorted(path.name for path in found.packages.iterdir()) == [".bin", ".dgm", "dep"]
    assert not (found.packages / "dep" / "node_modules" / "sums").exists()
    shown = found.shown("/work/repo")
    assert (shown.mount.target, shown.paths) == ("/node_modules", ("/node_modules/.dgm",))
    assert (tmp_path / "one" / "environments" / found.name / PACKAGES) == found.packages


@pytest.mark.parametrize("name", [".", "..", "@./..", "a/../.."])
def test_a_project_whose_name_is_a_path_removes_no_packages(tmp_path, name):
    (tmp_path / "environments").mkdir()
    (tmp_path / "modules" / "dep").mkdir(parents=True)
    (tmp_path / "modules" / "dep" / "package.json").write_text('{"name": "dep", "version": "1.2.3"}')
    manifest = {"package.json": Entry(json.dumps({"name": name}).encode())}
    kept = keep_modules(tmp_path / "modules", manifest, ("20", "x86_64"), tmp_path)
    assert read_environments(tmp_path)[kept].requirements == ("dep@1.2.3",)


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("command", "message"), [("exit 3", "exit status 3"), ("true", "left nothing in \\$DGM_PACKAGES")]
)
def test_a_set_up_that_fails_is_an_error(tmp_path, command, message):
    with pytest.raises(UserError, match=message):
        set_up(tmp_path, command)


def test_code_is_compared_without_comments_and_blanks():
    old, new = b"f(1); // why\n", b"/* how */\nf( 1 );\n"
    assert code_words(old, Language.JAVASCRIPT) == code_words(new, Language.JAVASCRIPT)
    assert code_words(old, Language.JAVASCRIPT) != code_words(b"f(2);", Language.JAVASCRIPT)
    assert code_words(None, Language.JAVASCRIPT) == ()
