"""Packages of a commit: what a setup command leaves becomes an environment that is named by its digest."""

import asyncio
import os

import pytest

from dgm.benchmarks.environments import environment_digest, read_environments
from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.mining.environment import (
    CannotInstall,
    Environments,
    Tool,
    find_error,
    missing_packages,
    with_generated,
)
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.domain import Entry
from tests.support.folder_builder import FolderBuilder

UV = """#!/bin/sh
case "$1 $2" in
    "venv -q") mkdir -p "$3/lib/python3.11/site-packages" "$3/bin"; touch "$3/pyvenv.cfg" "$3/bin/activate" ;;
    *) echo "$*" >> ../uv.log ;;
esac
"""
EDITABLE = """
site=$DGM_PACKAGES/lib/python3.11/site-packages; here=$(pwd)
for name in sums kit; do mkdir -p $site/$name-1.dist-info; touch $site/$name-1.dist-info/METADATA; done
echo '{"url": "https://example.org/kit"}' > $site/kit-1.dist-info/direct_url.json
echo "{\\"url\\": \\"file://$here\\", \\"dir_info\\": {\\"editable\\": true}}" > $site/sums-1.dist-info/direct_url.json
printf 'sums.pth,,\\nsums-1.dist-info/METADATA,,\\n../../../bin/sums,,\\n' > $site/sums-1.dist-info/RECORD
echo "$here/python" > $site/sums.pth
printf "MAPPING: dict[str, str] = {'more': '$here/extra/more'}\\n" > $site/__editable___more_1_finder.py
mkdir $site/kit; echo 'x = 1' > $site/kit/__init__.py; mkdir $site/kit/__pycache__; touch $site/kit/__pycache__/x.pyc
printf "#!$DGM_PACKAGES/bin/python\\nprint(1)\\n" > $DGM_PACKAGES/bin/sums; chmod +x $DGM_PACKAGES/bin/sums
git describe --tags > python/version.txt; mkdir -p build; touch build/x
"""
VERSIONS = {Language.JAVASCRIPT: "20", Language.GO: "1.23"}
FILES = {"pyproject.toml": Entry(b""), "python/sums.py": Entry(b""), ".gitignore": Entry(b"version.txt\n")}


def build(folder, language, command="", files=FILES, tag="", missing=(), builder=None, tools=None):
    """Return the environment that a command makes, with programs of the test's own."""
    programs = folder / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    for name, text in {"uv": UV, **(tools or {})}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    builder = builder or FolderBuilder(PATH=f"{programs}:{os.environ['PATH']}", HOME=str(folder))
    journal = MiningJournal(folder / "journal.jsonl", {})
    environments = Environments(
        folder, Tool(language, VERSIONS.get(language, "3.11"), "x86_64"), journal, builder, command
    )
    try:
        return asyncio.run(environments.environment(files, "2026-01-02", tag, missing)), environments.remarks
    finally:
        journal.close()


def names_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.starts_processes
def test_an_editable_installation_becomes_folders_of_the_workspace(tmp_path):
    made, remarks = build(tmp_path / "a", Language.PYTHON, EDITABLE, tag="v1.2")
    assert made.roots == ("extra", "python", ".")
    assert names_below(made.packages) == [
        ".keep", "bin/sums", "kit-1.dist-info/METADATA", "kit/__init__.py",
        "repository/sums-1.dist-info/METADATA", "repository/sums-1.dist-info/RECORD",
    ]  # fmt: skip
    assert (made.packages / "bin" / "sums").read_text() == "#!/usr/bin/env python3\nprint(1)\n"
    assert made.python_path == ("/opt/dgm-environment", "/opt/dgm-environment/repository")
    assert remarks == {made.name: "by --setup"}
    assert environment_digest(made.packages.parent).startswith(made.name)
    assert build(tmp_path / "b", Language.PYTHON, EDITABLE, tag="v1.2")[0].name == made.name


@pytest.mark.starts_processes
def test_what_a_build_generates_belongs_to_the_workspace_with_the_version_of_the_tag(tmp_path):
    made, _ = build(tmp_path, Language.PYTHON, EDITABLE, tag="v1.2")
    workspace = with_generated(FILES, made)
    assert set(workspace) - set(FILES) == {"python/version.txt"}
    assert workspace["python/version.txt"].data == b"v1.2\n"


@pytest.mark.starts_processes
def test_a_copy_of_the_project_is_not_kept(tmp_path):
    command = """
    mkdir -p "$DGM_PACKAGES/sums-1.dist-info"; touch "$DGM_PACKAGES/sums.py"
    echo "{\\"url\\": \\"file://$(pwd)\\"}" > "$DGM_PACKAGES/sums-1.dist-info/direct_url.json"
    printf 'sums.py,,\\n' > "$DGM_PACKAGES/sums-1.dist-info/RECORD"
    """
    made, _ = build(tmp_path, Language.PYTHON, command)
    assert (made.roots, names_below(made.packages)) == (
        ("python", "."),
        [".keep", "repository/sums-1.dist-info/RECORD"],
    )


@pytest.mark.starts_processes
def test_missing_packages_are_installed_too_and_make_another_environment(tmp_path):
    _, remarks = build(tmp_path, Language.PYTHON, "true", missing=("pyyaml",))
    assert list(remarks.values()) == ["by --setup; with pyyaml, which tests ask for"]


@pytest.mark.starts_processes
def test_a_command_that_fails_names_the_error_and_its_log(tmp_path):
    command = "echo 'ERROR: no matching distribution: nosuch'; echo 'more lines'; exit 3"
    with pytest.raises(
        CannotInstall, match=r"ERROR: no matching distribution: nosuch more lines \(log: .*\.log\)"
    ):
        build(tmp_path, Language.PYTHON, command)
    assert "more lines" in next(tmp_path.glob("logs/setup-*.log")).read_text()


@pytest.mark.starts_processes
def test_usual_commands_reach_indexes_only_and_the_users_reaches_the_internet(tmp_path):
    builder = FolderBuilder(HOME=str(tmp_path))
    build(tmp_path, Language.CPP, builder=builder)
    build(tmp_path / "own", Language.CPP, "true", builder=builder)
    assert [public for _, public in builder.ran] == [False, True]


@pytest.mark.starts_processes
def test_modules_of_go_are_kept_without_what_two_downloads_do_not_share(tmp_path):
    go = """#!/bin/sh
    test "$GOTOOLCHAIN $*" = "local mod download" || exit 9
    mkdir -p "$GOMODCACHE/b.org/c@v1" "$GOMODCACHE/cache/download/b.org/c/@v" "$GOMODCACHE/cache/vcs"
    touch "$GOMODCACHE/b.org/c@v1/c.go" "$GOMODCACHE/cache/vcs/x"
    touch "$GOMODCACHE/cache/download/b.org/c/@v/v1.ziphash" "$GOMODCACHE/cache/download/b.org/c/@v/v1.lock"
    """
    files = {"tool/go.mod": Entry(b"module a\n"), "vendor/x/go.mod": Entry(b"")}
    made, _ = build(tmp_path, Language.GO, files=files, tools={"go": go})
    assert (made.version, made.requirements) == ("1.23", ("b.org/c@v1",))
    assert names_below(made.packages / "mod") == ["b.org/c@v1/c.go", "cache/download/b.org/c/@v/v1.ziphash"]


@pytest.mark.starts_processes
def test_members_of_a_workspace_of_npm_are_links_in_the_tasks_workspace(tmp_path):
    npm = """#!/bin/sh
    test "$*" = ci || exit 9
    mkdir -p node_modules/dep node_modules/.bin packages/a
    echo '{"name": "dep", "version": "1.0.0"}' > node_modules/dep/package.json
    ln -s ../packages/a node_modules/a; ln -s ../dep/package.json node_modules/.bin/dep
    """
    files = {"package.json": Entry(b"{}"), "package-lock.json": Entry(b"{}")}
    made, _ = build(tmp_path, Language.JAVASCRIPT, files=files, tools={"npm": npm})
    assert made.requirements == ("dep@1.0.0",)
    assert (made.packages / ".dgm" / "bin" / "dep").is_file()
    assert with_generated({}, made) == {"node_modules/a": Entry(b"../packages/a", 0o120000)}


@pytest.mark.starts_processes
def test_an_environment_that_is_there_is_not_built_again(tmp_path):
    first, _ = build(tmp_path, Language.CPP)
    assert build(tmp_path, Language.CPP, builder=FolderBuilder(PATH="/nowhere"))[0] == first
    assert list(read_environments(tmp_path)) == [first.name]


def test_errors_are_found_in_logs():
    uv = (
        "Using Python\n  × No solution found:\n  ╰─▶ Because x was not found and y\n      depends on x, no.\n"
    )
    assert find_error(uv) == "Because x was not found and y depends on x, no."
    assert find_error("npm ERR! code E404\nnpm ERR! 404 gone\n") == "npm ERR! code E404 npm ERR! 404 gone"
    assert find_error("nothing to see\nlast\n\n") == "last"


def test_packages_that_errors_miss_are_found_but_for_the_repositorys_own():
    log = """
    E   ModuleNotFoundError: No module named 'yaml'
    E   ModuleNotFoundError: No module named 'freezegun.api'
    E   ModuleNotFoundError: No module named 'shop.version'
    E   ModuleNotFoundError: No module named 'tabulate'
    E       fixture 'mocker' not found
    E       fixture 'shop_client' not found
    Error: Cannot find module 'chai'
    Error: Cannot find module './lib/x'
    pytest.UsageError: Missing required plugins: pytest-env
    """
    files = ["src/shop/price.py", "members/tabulate/__init__.py"]
    assert missing_packages(log, files) == ("pyyaml", "freezegun", "pytest-mock", "chai", "pytest-env")


def test_every_language_has_a_setup_command_and_declaring_files():
    for record in LANGUAGES.values():
        assert record.setup
        assert record.version
    assert LANGUAGES[Language.PYTHON].declares.fullmatch("dev-requirements.txt")
    assert not LANGUAGES[Language.GO].declares.fullmatch("main.go")
