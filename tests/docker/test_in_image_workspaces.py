"""Workspaces that stand in an image: what an agent is given there, and that its patch is what it left."""

import asyncio
import io
import tarfile

import pytest

from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.prepared import LABEL, ORIGIN, prepare
from dgm.sandboxes.transfer import patch_of
from tests.docker.conftest import RUN, _engine

pytestmark = [pytest.mark.docker, pytest.mark.sandbox]

BASE = "dgm-test/in-image:1"
SETUP = r"""
set -eu
git init -q /testbed && cd /testbed
git config user.name someone && git config user.email someone@example.invalid
mkdir pkg tests
printf 'VALUE = 1\n' > pkg/code.py
printf 'one\r\ntwo\r\n' > crlf.txt
printf '* text=auto\n*.cfg filter=upper ident\n' > .gitattributes
printf 'build/\n*.log\n' > .gitignore
printf 'kept although ignored\n' > kept.log
printf '[a]\nb = $Id$\n' > setup.cfg
printf '#!/bin/sh\necho run\n' > run.sh && chmod 755 run.sh
ln -s pkg/code.py link
git add -A && git add -f kept.log && git commit -qm 'the base commit'
git tag v1 && git remote add origin https://example.invalid/repo.git
printf 'VALUE = 2  # the fix of the future\n' > pkg/code.py
git commit -qam 'SECRET-FUTURE-FIX' && git tag v2 && git gc -q
git reset -q --hard v1
printf 'pinned = 1\n' >> setup.cfg
mkdir build nested && printf 'built\n' > build/lib.txt && git init -q nested && printf 'n\n' > nested/inner.txt
chmod 600 pkg/code.py && chmod 700 tests
"""
DOCKERFILE = "FROM {base}\nCOPY setup.sh /setup.sh\nRUN sh /setup.sh\nENV PATH=/opt/more/bin:/usr/bin:/bin\n"


@pytest.fixture(scope="module")
def engine():
    found = _engine("docker")
    if not isinstance(found, DockerEngine):
        pytest.skip(f"NOT RUN with docker: {found}")
    return found


def build(engine, tag, setup, base=None):
    """An image whose /setup.sh has run."""
    context = io.BytesIO()
    dockerfile = DOCKERFILE.format(base=base or engine.build("python"))
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, text in (("Dockerfile", dockerfile), ("setup.sh", setup)):
            header = tarfile.TarInfo(name)
            header.size = len(text.encode())
            archive.addfile(header, io.BytesIO(text.encode()))
    context.seek(0)
    steps = engine.client.api.build(
        fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True, decode=True, network_mode="none"
    )
    errors = [step["error"] for step in steps if "error" in step]
    assert not errors


@pytest.fixture(scope="module")
def tag(engine):
    """The derived image of a repository with everything that is hard about one."""
    build(engine, BASE, SETUP)
    made = prepare(engine.client, BASE, repository=ORIGIN).tag
    yield made
    for each in (made, BASE):
        engine.client.images.remove(each, force=True)


def spec(tag, **given):
    small = {"memory_mb": 256, "pids": 64, "disk_mb": 64, "lifetime_s": 120.0, "labels": {"dgm.run": RUN}}
    return SandboxSpec(f"docker:{tag}", filled={"/testbed": "/opt/dgm/work"}, **{**small, **given})


def left(engine, tag, script, limit_bytes=100_000, **limits):
    """What a shell script printed in the workdir, the patch of what it left, and what was too large for it."""

    async def work():
        async with engine.open(spec(tag, **limits)) as sandbox:
            done = await sandbox.exec(["sh", "-c", script], timeout_s=30, cwd="/testbed")
            patch, left_out = await patch_of(sandbox, "/testbed", "/opt/dgm/baseline.git", limit_bytes)
            return done.output.decode("utf-8", "replace"), patch, left_out

    return asyncio.run(work())


def applied(engine, tag, patch, question):
    """What a question prints in a fresh workspace with the patch."""

    async def work():
        async with engine.open(spec(tag)) as sandbox:
            done = await sandbox.exec(
                ["sh", "-c", f"git apply --whitespace=nowarn - && {question}"],
                timeout_s=30,
                cwd="/testbed",
                stdin=patch,
            )
            return done.output.decode("utf-8", "replace")

    return asyncio.run(work())


def test_the_workspace_is_a_clean_repository_of_one_commit_with_the_images_commands(engine, tag):
    said, patch, _ = left(
        engine,
        tag,
        "git status --porcelain; git log --all --format=%s; git tag; git remote; git branch --format='%(refname)'; "
        "cat pkg/code.py setup.cfg build/lib.txt nested/inner.txt kept.log; readlink link; id -un; echo $PATH; "
        "command -v python3",
    )
    lines = said.splitlines()
    assert lines[:2] == ["start", "refs/heads/main"]
    assert "pinned = 1" in lines and "built" in lines and "n" in lines and "kept although ignored" in lines
    path = "/opt/dgm/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/more/bin"
    assert lines[-4:] == ["pkg/code.py", "agent", path, "/usr/bin/python3"]
    assert patch == b""


def test_nothing_of_the_history_is_left(engine, tag):
    search = (
        "git cat-file --batch-all-objects --batch-check; git -C /opt/dgm/baseline.git cat-file --batch-all-objects "
        "--batch --buffer | grep -ac FUTURE; git reflog; "
        "find / -xdev -path /proc -prune -o -name ORIG_HEAD -print 2>/dev/null; ls -a /testbed/.git /opt/dgm"
    )
    said, *_ = left(engine, tag, search)
    assert said.count(" commit ") == 1
    assert "\n0\n" in said
    assert "ORIG_HEAD" not in said and "packed-refs" not in said


def test_a_patch_holds_every_kind_of_change(engine, tag):
    script = (
        "printf 'VALUE = 3\\n' > pkg/code.py; rm crlf.txt; chmod 644 run.sh; ln -sf setup.cfg link; "
        "printf '\\0\\1\\2' > new.bin; mkdir 'a b'; printf 'x' > 'a b/\u00e4\nc'; mv kept.log moved.txt; "
        "printf 'noise' > ignored.log; mkdir tests/__pycache__; printf 'x' > tests/__pycache__/a.pyc"
    )
    _, patch, _ = left(engine, tag, script)
    assert b"ignored.log" not in patch and b"__pycache__" not in patch
    state = (
        "cat pkg/code.py moved.txt 'a b'/*; ls -l run.sh; readlink link; ls crlf.txt kept.log; od -c new.bin"
    )
    said = applied(engine, tag, patch, state)
    assert "VALUE = 3\nkept although ignored\nx-rw-r--r--" in said
    assert "setup.cfg\n" in said and said.count("No such file") == 2 and "001 002" in said


def test_line_ends_and_keywords_stay_and_a_nested_repository_counts_as_its_files(engine, tag):
    commit = "git add -A && git -c user.name=a -c user.email=b commit -qm x"
    script = (
        "printf 'three\\r\\n' >> crlf.txt; printf 'c = $Id: 5 $\\n' >> setup.cfg; "
        f"git init -q lib && cd lib && echo inner > file && {commit}"
    )
    _, patch, _ = left(engine, tag, script)
    assert b"\n+three\r\n" in patch and b"+c = $Id: 5 $" in patch and b"-one" not in patch
    assert b"+inner" in patch and b"Subproject" not in patch and b".git/" not in patch


TRICKS = {
    "own-git-config": (
        "git config core.worktree /tmp; git config filter.x.clean 'echo lie'; git config diff.external /bin/true; "
        "git config core.fsmonitor /testbed/.git/lie; git config core.hooksPath /testbed; "
        "git config core.excludesFile /testbed/all; echo '*' > all; echo '* filter=x' > .gitattributes"
    ),
    "attributes": (
        "printf '* text eol=crlf working-tree-encoding=UTF-16 ident -diff binary\\n[attr]z text\\n' > .gitattributes; "
        "mkdir -p .git/info; printf '* -diff' > .git/info/attributes"
    ),
    "own-git-in-path": (
        "mkdir -p /tmp/bin /work/bin; printf '#!/bin/sh\\necho lie\\n' > /tmp/bin/git; chmod 755 /tmp/bin/git; "
        "cp /tmp/bin/git /testbed/git; cp /tmp/bin/git /work/bin/git; rm /testbed/git; "
        "printf '[core]\\nfsmonitor = /tmp/bin/git\\n[diff]\\nexternal = /bin/true\\n' > /tmp/.gitconfig"
    ),
    "alternates": "mkdir -p .git/objects/info; echo /tmp/objects > .git/objects/info/alternates; echo x > .git/HEAD",
    "symlinked-git": "mv .git /tmp/real; ln -s /opt/dgm/baseline.git .git",
    "git-file": "rm -rf .git; echo 'gitdir: /tmp/elsewhere' > .git",
    "no-git": "rm -rf .git",
    "committed": (
        "git -c user.name=a -c user.email=a@b commit -qam done; git update-index --assume-unchanged pkg/code.py"
    ),
    "pretended-times": "touch -r run.sh pkg/code.py; git update-index --skip-worktree pkg/code.py",
    "git-files": "for f in GIT_DIR GIT_INDEX_FILE FETCH_HEAD MERGE_HEAD; do echo lie > .git/$f; done; rm .git/index",
    "modes": "chmod 000 pkg/code.py; chmod 000 pkg",
    "pipes": "mkfifo pkg/.gitignore pkg/.gitattributes pipe; mkfifo .gitmodules",
    "sparse": "git sparse-checkout set nothing 2>/dev/null; mkdir -p pkg; printf 'VALUE = 9\\n' > pkg/code.py",
    "replaced": (
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git replace HEAD~ HEAD; git gc -q"
    ),
    "linked-ignore": "ln -s /etc/passwd pkg/.gitignore; ln -s /testbed/pkg/loop pkg/loop; rm pkg/.gitignore pkg/loop",
    "odd-names": "ln -s pkg/code.py .gitmodules; mkdir .GIT; echo x > .GIT/config",
    "running": (
        "(setsid sh -c 'while :; do echo lie > /testbed/pkg/code.py; sleep 0.01; done' >/dev/null 2>&1 &); "
        "until grep -q lie /testbed/pkg/code.py; do sleep 0.01; done"
    ),
}


RESET = (
    "chmod -R u+rwx /testbed; find /testbed -mindepth 1 -delete; cp -a /opt/dgm/work/. /testbed; cd /testbed; "
    "printf 'VALUE = 9\\n' > pkg/code.py; "
)


def test_no_trick_hides_or_forges_a_change(engine, tag):
    async def work():
        patches = {}
        async with engine.open(spec(tag, lifetime_s=600.0)) as sandbox:
            for trick, script in TRICKS.items():
                await sandbox.exec(["sh", "-c", RESET + script], timeout_s=60, cwd="/")
                patches[trick], _ = await patch_of(sandbox, "/testbed", "/opt/dgm/baseline.git", 100_000)
        return patches

    for trick, patch in asyncio.run(work()).items():
        expected = b"+lie" if trick == "running" else b"+VALUE = 9"
        assert b"-VALUE = 1\n" + expected + b"\n" in patch, trick
        named = {line.split()[-1] for line in patch.splitlines() if line.startswith(b"diff --git")}
        assert named <= {b"b/pkg/code.py", b"b/.gitattributes", b"b/all", b"b/nested/inner.txt"}, trick


def test_an_own_gitignore_hides_only_what_is_new(engine, tag):
    _, patch, _ = left(
        engine, tag, "echo '*' > .gitignore; echo new > new.txt; echo 'VALUE = 4' > pkg/code.py"
    )
    assert b"+VALUE = 4" in patch and b"new.txt" not in patch


def test_the_baseline_cannot_be_written(engine, tag):
    said, patch, _ = left(
        engine, tag, "echo x > /opt/dgm/baseline.git/HEAD; rm -rf /opt/dgm/work; echo 1 > new.txt"
    )
    assert "Read-only file system" in said
    assert b"+1\n" in patch


def test_a_huge_change_is_refused_and_a_huge_new_file_is_left_out(engine, tag):
    with pytest.raises(AgentFault, match="more than 1000 bytes"):
        left(engine, tag, "seq 5000 > pkg/code.py", limit_bytes=1000)
    _, patch, left_out = left(engine, tag, "seq 5000 > numbers.txt", limit_bytes=1000)
    assert (patch, left_out) == (b"", {"numbers.txt": 23893})


def test_a_full_sandbox_still_gives_its_patch(engine, tag):
    script = "echo 'VALUE = 5' > pkg/code.py; head -c 200M /dev/zero > /tmp/fill"
    _, patch, _ = left(engine, tag, script)
    assert b"+VALUE = 5" in patch


def test_more_than_git_can_hold_costs_no_fix(engine, tag):
    script = "echo 'VALUE = 7' > pkg/code.py; head -c 40M /dev/urandom > noise.bin"
    _, patch, left_out = left(engine, tag, script, disk_mb=64)
    assert b"+VALUE = 7" in patch
    assert left_out == {"noise.bin": 40 << 20}


def test_a_fork_bomb_does_not_stop_the_comparison(engine, tag):
    bomb = "echo 'VALUE = 6' > pkg/code.py; (setsid sh -c 'b() { b | b & }; b' >/dev/null 2>&1 &) ; sleep 1"
    _, patch, _ = left(engine, tag, bomb, pids=40)
    assert b"+VALUE = 6" in patch


def test_it_is_derived_once_and_is_no_image_of_its_recipe(engine, tag):
    again = prepare(engine.client, BASE, repository=ORIGIN)
    assert (again.tag, again.made) == (tag, False)
    assert engine.client.images.get(tag).labels[LABEL] == BASE
    recipes = engine.task_images.list_recipes()
    assert not {tag, BASE} & set(recipes)
    assert engine.build("python") in recipes


@pytest.mark.parametrize(
    ("setup", "problem"),
    [
        ("mkdir /testbed", "there is no git repository at /testbed"),
        ("git init -q /testbed; rm /usr/bin/python3", "lacks python3"),
        ("git init -q /testbed; mv /usr/bin/find /usr/bin/lost", "lacks find"),
        ("git init -q /testbed; printf junk > /testbed/.git/index", "index"),
    ],
)
def test_an_image_that_cannot_be_used_says_why(engine, setup, problem):
    name = "dgm-test/unusable:1"
    build(engine, name, setup)
    try:
        with pytest.raises(UserError, match=problem):
            prepare(engine.client, name, repository=ORIGIN)
    finally:
        engine.client.images.remove(name, force=True)


def test_a_missing_image_is_named(engine):
    with pytest.raises(Infrastructure, match="no image dgm-test/none:1: pull or build it"):
        left(engine, "dgm-test/none:1", "true")
    with pytest.raises(UserError, match="no image dgm-test/none:1"):
        prepare(engine.client, "dgm-test/none:1", repository=ORIGIN)


def test_a_folder_that_the_image_lacks_is_named(engine, tag):
    async def work():
        wanted = SandboxSpec(f"docker:{tag}", filled={"/testbed": "/opt/none"}, labels={"dgm.run": RUN})
        async with engine.open(wanted):
            pass

    with pytest.raises(Infrastructure, match="/opt/none cannot be copied to /testbed"):
        asyncio.run(work())


def test_the_copy_is_bounded(engine, tag):
    said, *_ = left(engine, tag, "head -c 500M /dev/zero > big; stat -c %s big; rm big", memory_mb=512)
    assert 60_000_000 < int(said.splitlines()[-1]) < 80_000_000


def test_bubblewrap_refuses_images():
    async def work(wanted):
        async with BubblewrapEngine().open(wanted):
            pass

    for wanted in (spec("x"), SandboxSpec("python", filled={"/testbed": "/x"})):
        with pytest.raises(UserError, match="set sandbox to docker"):
            asyncio.run(work(wanted))


def test_files_that_an_image_made_executable_are_ordinary_again(engine):
    name = "dgm-test/modes:1"
    setup = (
        "git init -q /testbed && cd /testbed && echo 1 > a.py && git add -A && "
        "git -c user.name=a -c user.email=b commit -qm x && chmod -R 777 ."
    )
    build(engine, name, setup)
    tag = prepare(engine.client, name, repository=ORIGIN).tag
    try:
        said, patch, _ = left(engine, tag, "ls -l a.py; git ls-files -s")
    finally:
        for each in (tag, name):
            engine.client.images.remove(each, force=True)
    assert said.startswith("-rw-r--r--") and "\n100644 " in said
    assert patch == b""
