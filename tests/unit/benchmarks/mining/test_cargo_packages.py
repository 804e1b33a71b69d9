"""Crates of a commit in Rust, and how cargo finds them in a sandbox."""

import tomllib

import pytest

from dgm.benchmarks.environments import read_environments
from dgm.benchmarks.mining.cargo_packages import keep_packages, read_crates, run_command, with_cargo
from dgm.benchmarks.mining.commands import CARGO_TEST, find_command
from dgm.domain import Entry
from dgm.errors import UserError

MANIFEST = """\
[package]
name = "a"
[dependencies]
own = { path = "../own" }
memchr = "2"
[target.'cfg(unix)'.dev-dependencies]
libc = { version = "1" }
[workspace.dependencies]
log = "3"
"""


def files(**texts):
    return {name.replace("__", "."): Entry(text.encode()) for name, text in texts.items()}


def test_crates_are_those_of_all_manifests_but_own_folders():
    found = read_crates(files(Cargo__toml=MANIFEST) | {"b/Cargo.toml": Entry(b"[dependencies\n")})
    assert found == ["libc {'version': '1'}", "log 3", "memchr 2"]


def test_a_workspace_gets_a_source_of_crates():
    name = ".cargo/config.toml"
    text = with_cargo({})[name].data.decode()
    assert 'directory = "/opt/dgm-environment/vendor"' in text
    assert "offline = true" in text
    own = {name: Entry(b"[net]\nretry = 1\n")}
    assert with_cargo(own)[name].data.decode().startswith("[net]\nretry = 1\n\n[source.crates-io]")
    assert "offline" not in with_cargo(own)[name].data.decode()
    assert "offline" in with_cargo({name: Entry(b"# [net] and [source]\n")})[name].data.decode()
    dotted = with_cargo({name: Entry(b"net.retry = 1\n")})[name].data.decode()
    assert tomllib.loads(dotted)["net"] == {"retry": 1}


@pytest.mark.parametrize("text", ["[source.crates-io]\n", 'source.x.directory = "y"\n', "[net\n"])
def test_sources_of_its_own_and_what_cargo_refuses_stay(text):
    files = {".cargo/config": Entry(text.encode())}
    assert with_cargo(files) == files


def test_packages_of_a_command_are_an_environment(tmp_path):
    empty = keep_packages(None, (), "x86_64", tmp_path)
    folder = tmp_path / "packages"
    (folder / "vendor").mkdir(parents=True)
    (folder / "vendor" / "x").write_text("x")
    full = keep_packages(folder, ("x@1",), "x86_64", tmp_path)
    found = read_environments(tmp_path)
    assert (found[empty].command, found[empty].machine) == (True, "")
    assert (found[full].requirements, found[full].machine) == (("x@1",), "x86_64")
    assert found[full].shown("/work/repo").mount.target == "/opt/dgm-environment"
    assert keep_packages(None, (), "x86_64", tmp_path) == empty


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("command", "message"),
    [("echo bad >&2; exit 3", "--setup ended with exit status 3: bad"), ("true", "--setup left nothing in")],
)
def test_a_setup_that_fails_is_told(tmp_path, command, message):
    (tmp_path / "packages").mkdir()
    with pytest.raises(UserError, match=message):
        run_command(command, tmp_path, tmp_path / "packages")


@pytest.mark.starts_processes
def test_a_setup_fills_the_folder_of_packages(tmp_path):
    (tmp_path / "packages").mkdir()
    run_command('mkdir "$DGM_PACKAGES/vendor"', tmp_path, tmp_path / "packages")
    assert (tmp_path / "packages" / "vendor").is_dir()


def test_the_usual_command_needs_a_manifest():
    assert find_command(files(Cargo__toml=""), "") == CARGO_TEST
    with pytest.raises(ValueError, match=r"has no Cargo\.toml"):
        find_command({}, "")


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ("cd a && cargo test --lib", "cd a && cargo test --no-fail-fast --lib"),
        ("cargo +stable t -- --skip x", "cargo +stable t --no-fail-fast -- --skip x"),
        ("cargo test --no-fail-fast", "cargo test --no-fail-fast"),
        (
            "cargo t --no-fail-fast; cargo test --doc",
            "cargo t --no-fail-fast; cargo test --no-fail-fast --doc",
        ),
    ],
)
def test_every_program_of_a_given_command_runs(given, command):
    assert find_command({}, given) == command


def test_a_command_whose_output_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="does not call cargo test"):
        find_command({}, "make check")
    with pytest.raises(ValueError, match="never runs, as tests that must fail are added; use ;"):
        find_command({}, "cargo test --lib && cargo test --test all")
