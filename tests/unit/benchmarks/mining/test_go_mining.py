"""Go: how tests are called, and which modules are fetched."""

import asyncio
import shutil

import pytest

from dgm.benchmarks.environments import environment_digest, read_environments
from dgm.benchmarks.mining.go_calls import find_go_call, module_name
from dgm.benchmarks.mining.go_modules import build_go_environment, check_version, read_modules, requires
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Entry
from tests.support.folder_builder import FolderBuilder

MODULE = {"go.mod": Entry(b"module example.org/sums/v2\n\ngo 1.18\n")}


def test_all_packages_are_called_unless_it_is_said():
    assert find_go_call(MODULE).kind == "go"
    call = find_go_call(
        MODULE, "go generate ./... && A=b go test -v -tags 'x y' -short -race -count 1 ./a/..."
    )
    assert call.build == ("go generate ./...",)
    assert call.env == (("A", "b"),)
    assert (call.flags, call.options, call.patterns) == (("-tags=x y",), ("-test.short",), ("./a/...",))


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ({}, "", "no go.mod"),
        (MODULE, "make test", "must call go test"),
        (MODULE, "go test -run TestA ./...", "-run is not taken over"),
        (MODULE, "go test ./a -args x", "-args is not taken over"),
        (MODULE, "cd a && go test ./...", "cd holds for one step alone"),
        (MODULE, "go vet && export A=1 && go test", "export holds for one step alone"),
    ],
)
def test_other_calls_are_refused(files, given, message):
    with pytest.raises(ValueError, match=message):
        find_go_call(files, given)


def test_the_module_gives_the_name():
    assert module_name(MODULE) == "sums"
    assert module_name({}) == ""


def test_a_module_for_a_newer_go_is_refused_where_go_does_so():
    newer = {"go.mod": Entry(b"module a\ngo 1.24.1\n")}
    assert check_version(newer, "1.24") == ""
    assert check_version(newer, "1.19") == "its go.mod asks for Go 1.24, and the sandbox has 1.19"
    with pytest.raises(CannotInstall, match=r"asks for Go 1\.24, and the sandbox has 1\.23"):
        check_version(newer, "1.23")


def test_modules_are_those_of_the_repository_alone():
    files = {
        name: Entry(b"module a\n")
        for name in ("go.mod", "tool/go.mod", "vendor/b/go.mod", "a/testdata/go.mod")
    }
    assert sorted(read_modules(files)) == ["go.mod", "tool/go.mod"]
    declared = b"module a\nrequire b.org/c v1.2.0 // why\nrequire (\n\td.org/e v0.1.0\n)\n// require x.org/y v1.0.0\n"
    assert requires(declared) == ["b.org/c@v1.2.0", "d.org/e@v0.1.0"]


def build(files, folder, builder=None):
    return asyncio.run(build_go_environment(files, "1.19", folder, builder or FolderBuilder()))


GO = """#!/bin/sh
test "$GOTOOLCHAIN $*" = "local mod download" || exit 9
case "$(cat go.mod)" in *b.org/gone*) echo "go: b.org/gone: no such module" >&2; exit 1;; esac
mkdir -p "$GOMODCACHE/b.org/c@v1.2.0" "$GOMODCACHE/cache/download/b.org/c/@v" "$GOMODCACHE/cache/vcs"
echo package c > "$GOMODCACHE/b.org/c@v1.2.0/c.go"
touch "$GOMODCACHE/cache/download/b.org/c/@v/v1.2.0.ziphash" "$GOMODCACHE/cache/download/b.org/c/@v/v1.2.0.lock"
"""


@pytest.mark.starts_processes
def test_modules_are_downloaded_by_go_alone_and_for_a_failure_its_words_are_kept(tmp_path):
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o755)
    builder = FolderBuilder(PATH=f"{tmp_path}:/usr/bin:/bin")
    declared = {
        "go.mod": Entry(b"module a\n\ngo 1.18\n\nrequire b.org/c v1.2.0\n"),
        "tool/go.mod": Entry(b"module b\n"),
    }
    built = build(declared, tmp_path / "suite", builder)
    assert builder.ran == [(["go", "mod", "download"], False)]
    environment = read_environments(tmp_path / "suite")[built.name]
    assert environment.requirements == ("b.org/c@v1.2.0",)
    found = {path.name for path in environment.packages.rglob("*") if path.is_file()}
    assert found == {"c.go", "v1.2.0.ziphash", ".keep"}
    lacking = {"go.mod": Entry(b"module a\n\nrequire b.org/gone v1.2.0\n")}
    with pytest.raises(CannotInstall, match=r"^go: b\.org/gone: no such module$"):
        build(lacking, tmp_path / "suite", builder)


def test_a_repository_without_modules_or_with_its_own_copies_needs_no_download(tmp_path):
    vendored = {"go.mod": Entry(b"module a\nrequire b.org/c v1.2.0\n"), "vendor/modules.txt": Entry(b"")}
    names = [build(files, tmp_path).name for files in (MODULE, vendored)]
    assert len({*names}) == 1
    environment = read_environments(tmp_path)[names[0]]
    assert environment.needs == ("Go", "1.19")
    assert environment_digest(environment.packages.parent).startswith(names[0])
    shown = environment.shown("/work/repo")
    assert dict(shown.variables)["GOMODCACHE"] == f"{shown.mount.target}/mod"
    with pytest.raises(CannotInstall, match=r"no go\.mod"):
        build({}, tmp_path)


@pytest.mark.starts_processes
@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
def test_modules_come_from_go_and_the_same_modules_are_the_same_environment(tmp_path):
    import zipfile

    place = tmp_path / "proxy" / "b.org" / "c" / "@v"
    place.mkdir(parents=True)
    (place / "list").write_text("v1.2.0\n")
    (place / "v1.2.0.info").write_text('{"Version": "v1.2.0"}')
    (place / "v1.2.0.mod").write_text("module b.org/c\n")
    with zipfile.ZipFile(place / "v1.2.0.zip", "w") as packed:
        packed.writestr("b.org/c@v1.2.0/c.go", "package c\n")
        packed.writestr("b.org/c@v1.2.0/go.mod", "module b.org/c\n")
    builder = FolderBuilder(GOPROXY=f"file://{tmp_path / 'proxy'}", GONOSUMDB="*", HOME=str(tmp_path))
    declared = {"go.mod": Entry(b"module a\n\ngo 1.18\n\nrequire b.org/c v1.2.0\n")}
    first, second = (build(declared, tmp_path / name, builder).name for name in "ab")
    assert first == second
    environment = read_environments(tmp_path / "a")[first]
    assert environment.requirements == ("b.org/c@v1.2.0",)
    assert (environment.packages / "mod" / "b.org" / "c@v1.2.0" / "c.go").is_file()
    lacking = {"go.mod": Entry(b"module a\n\ngo 1.18\n\nrequire b.org/d v1.2.0\n")}
    with pytest.raises(CannotInstall, match=r"b\.org/d"):
        build(lacking, tmp_path / "a", builder)
