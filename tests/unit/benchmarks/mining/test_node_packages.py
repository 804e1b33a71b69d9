"""Packages that are installed for a commit in JavaScript."""

import json

import pytest

from dgm.benchmarks.environments import PACKAGES, environment_digest, read_environments
from dgm.benchmarks.mining.languages import Language
from dgm.benchmarks.mining.node_packages import find_blamed, read_declared, run_node_setup, without
from dgm.benchmarks.mining.scan import code_words
from dgm.domain import Entry
from dgm.errors import UserError

NODE = ("20", "x86_64")


def files(**more):
    return {"package.json": Entry(json.dumps({"name": "sums", **more}).encode())}


def test_packages_that_no_registry_has_are_left_out():
    declared, foreign = read_declared(
        files(
            dependencies={"a": "^1", "b": "github:x/y", "c": "npm:d@1"},
            devDependencies={"e": "file:../e", "f": "*"},
        )
    )
    assert declared == {"dependencies": {"a": "^1", "c": "npm:d@1"}, "devDependencies": {"f": "*"}}
    assert foreign == ["b", "e"]


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
    built = [run_node_setup(command, files(), NODE, tmp_path / each) for each in ("one", "two")]
    assert built[0] == built[1]
    found = read_environments(tmp_path / "one")[built[0].name]
    assert (found.node, found.python, found.machine, found.requirements) == ("20", "", "", ("dep@1.2.3",))
    assert environment_digest(found.packages.parent).startswith(built[0].name)
    assert sorted(path.name for path in found.packages.iterdir()) == [".bin", ".dgm", "dep"]
    assert not (found.packages / "dep" / "node_modules" / "sums").exists()
    shown = found.shown("/work/repo")
    assert (shown.mount.target, shown.paths) == ("/node_modules", ("/node_modules/.dgm",))
    assert (tmp_path / "one" / "environments" / found.name / PACKAGES) == found.packages


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("command", "message"), [("exit 3", "exit status 3"), ("true", "left nothing in \\$DGM_PACKAGES")]
)
def test_a_set_up_that_fails_is_an_error(tmp_path, command, message):
    with pytest.raises(UserError, match=message):
        run_node_setup(command, files(), NODE, tmp_path)


def test_code_is_compared_without_comments_and_blanks():
    old, new = b"f(1); // why\n", b"/* how */\nf( 1 );\n"
    assert code_words(old, Language.JAVASCRIPT) == code_words(new, Language.JAVASCRIPT)
    assert code_words(old, Language.JAVASCRIPT) != code_words(b"f(2);", Language.JAVASCRIPT)
    assert code_words(None, Language.JAVASCRIPT) == ()
