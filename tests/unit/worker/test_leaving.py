"""What an agent leaves is taken as a person would commit it, whatever lies around in its workdir."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from dgm.archive.repository import apply_patch
from dgm.archive.snapshots import from_folder
from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.gateway.launcher import make_repository
from dgm.meta.contract import read_contract
from dgm.protocols import Completed
from dgm.sandboxes.transfer import patch_of
from dgm.worker.leaving import (
    NEVER_COMMITTED,
    drop_ignored_files,
    fit_patch,
    format_left_out,
    keep_hidden_files,
    read_large,
)

pytestmark = pytest.mark.starts_processes

BEFORE = {
    ".gitignore": Entry(b"*.log\n/build/\nkept/*\n!kept/this\n"),
    "pkg/.gitignore": Entry(b"generated.py\n"),
    "pkg/code.py": Entry(b"x = 1\n"),
    "tracked.log": Entry(b"old\n"),
}
NEW = {
    "pkg/new.py": True,
    "kept/this": True,
    "sub/build/notes": True,
    "my env/src/x.py": True,
    "a.log": False,
    "build/out.o": False,
    "kept/that": False,
    "pkg/generated.py": False,
    "pkg/__pycache__/code.cpython-311.pyc": False,
    "pkg/old.pyc": False,
    ".pytest_cache/v/x": False,
    "my env/venv 3/pyvenv.cfg": False,
    "my env/venv 3/lib/x.py": False,
    "node_modules/a/index.js": False,
    ".notes/plan": False,
    "pkg/x.scratch": False,
    "plan.md": False,
    "docs/plan.md": True,
    ":(top)x": True,
    ":!y.log": False,
}
LITTER = (".notes/", "*.scratch", "/plan.md")
FIX = {"pkg/code.py": Entry(b"x = 2\n"), "tracked.log": Entry(b"new\n")}


def test_new_files_that_nobody_would_commit_are_no_part_of_it_and_tracked_ones_are():
    after = {**BEFORE, **FIX, **{name: Entry(b"1\n") for name in NEW}}
    left = drop_ignored_files(BEFORE, after, LITTER)
    assert {name for name in NEW if name in left} == {name for name, wanted in NEW.items() if wanted}
    assert b"tracked.log" in fit_patch(BEFORE, left, 10_000).patch
    assert left["pkg/code.py"] == FIX["pkg/code.py"]


def test_rules_that_the_agent_wrote_or_linked_are_read_as_git_reads_them():
    after = {
        **BEFORE,
        ".gitignore": Entry(b"*.tmp\n"),
        "sub/.gitignore": Entry(b"/etc/passwd", 0o120000),
        "sub/.git/info/exclude": Entry(b"*\n"),
        "a.tmp": Entry(b""),
        "sub/b.log": Entry(b""),
    }
    assert drop_ignored_files(BEFORE, after).keys() - BEFORE.keys() >= {"sub/b.log"}
    assert "a.tmp" not in drop_ignored_files(BEFORE, after)


def test_a_contract_names_its_litter_as_gitignore_does():
    text = '[agent]\ncommand = ["a"]\ncheck = ["b"]\nignored = %s\n'
    assert read_contract({"agent.toml": Entry((text % '["*.tmp"]').encode())}).ignored == ("*.tmp",)
    for wrong in ('["a\\nb"]', '["!x"]', '["  "]', '"x"'):
        with pytest.raises(AgentFault, match=r"agent\.ignored"):
            read_contract({"agent.toml": Entry((text % wrong).encode())})


def test_hidden_files_stay_as_they_were_put_in_whatever_the_agent_left():
    names = ("AGENTS.md", "sub/AGENTS.md", ".qwen/skills/a.md", "notes/AGENTS.md.txt", "a.py")
    before = {name: Entry(b"ours") for name in names}
    left = {"a.py": Entry(b"mended"), "AGENTS.md": Entry(b"theirs")}
    after = keep_hidden_files(before, left, ("**/AGENTS.md", ".qwen"))
    assert after == {**{name: Entry(b"ours") for name in names[:3]}, "a.py": Entry(b"mended")}
    assert keep_hidden_files(before, left, ()) is left


def test_a_fix_is_not_lost_to_artefacts_that_make_the_patch_too_long():
    fits = {**BEFORE, **FIX, "new.py": Entry(b"y = 1\n"), "data.bin": Entry(os.urandom(12_000))}
    left = fit_patch(BEFORE, {**fits, "out.bin": Entry(os.urandom(30_000))}, 20_000)
    assert apply_patch(BEFORE, left.patch) == fits
    assert format_left_out(left.left_out) == "left out of the patch: 1 new file of 30,000 bytes (out.bin)"
    assert left.files.keys() == fits.keys()


def test_a_patch_of_the_limits_length_is_read_and_a_longer_one_is_not():
    after = {**BEFORE, **FIX, "out.bin": Entry(os.urandom(30_000))}
    patch = fit_patch(BEFORE, {**BEFORE, **FIX}, 20_000).patch
    assert fit_patch(BEFORE, after, len(patch)).patch == patch
    with pytest.raises(AgentFault, match=f"{len(patch)} bytes; {len(patch) - 1} are allowed"):
        fit_patch(BEFORE, after, len(patch) - 1)


def test_a_tracked_file_that_grew_too_large_is_still_refused():
    with pytest.raises(AgentFault, match="are allowed"):
        fit_patch(BEFORE, {**BEFORE, "tracked.log": Entry(os.urandom(30_000))}, 20_000)


class Here:
    """A sandbox that is this machine; folders are real ones."""

    async def exec(self, argv, *, cwd="/", stdin=b"", output_limit=1_000_000, **_):
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=cwd, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        cut = len(done.stdout) > output_limit
        return Completed(done.returncode, done.stdout[:output_limit], truncated=cut)

    async def halt(self):
        pass


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.data if isinstance(data, Entry) else data)


def large(path, size):
    """A file of that size that takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def test_a_build_of_200_mb_is_left_where_it_is_and_the_fix_is_read(tmp_path):
    write(tmp_path, {**BEFORE, **FIX, "new.py": b"y\n"})
    large(tmp_path / "out" / "lib.bin", 200_000_000)
    large(tmp_path / "ignored.log", 200_000_000)
    (tmp_path / "out" / "a\nlink").symlink_to("lib.bin")
    files, left_out = asyncio.run(read_large(Here(), str(tmp_path), BEFORE, (), 1_000_000))
    assert files["pkg/code.py"] == FIX["pkg/code.py"]
    assert files.keys() == {*BEFORE, "new.py", "out/a\nlink"}
    assert left_out == {"out/lib.bin": 200_000_000}


def git(folder, *words):
    """Runs git as somebody, without this machine's settings."""
    who = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **who, **alone}, check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture
def image(tmp_path):
    """A work tree and its bare baseline, as an image has them."""
    tree, baseline = tmp_path / "testbed", tmp_path / "baseline.git"
    write(tree, BEFORE)
    git(tmp_path, "init", "-q", "--bare", str(baseline))
    where = [f"--git-dir={baseline}", f"--work-tree={tree}"]
    git(tree, *where, "add", "-Af")
    git(tree, *where, "commit", "-qm", "start")
    (baseline / "info" / "exclude").write_text("local.txt\n")
    return tree, str(baseline)


def test_a_repository_in_an_image_gives_the_same_files(image):
    tree, baseline = image
    write(tree, {**FIX, **dict.fromkeys(NEW, b"1\n"), "local.txt": b"1\n"})
    patterns = (*NEVER_COMMITTED, *LITTER)
    patch, left_out = asyncio.run(patch_of(Here(), str(tree), baseline, 100_000, patterns))
    after = apply_patch(BEFORE, patch)
    assert after.keys() - BEFORE.keys() == {name for name, wanted in NEW.items() if wanted}
    assert (after["pkg/code.py"], after["tracked.log"], left_out) == (*FIX.values(), {})


def test_a_build_in_an_image_costs_no_fix(image):
    tree, baseline = image
    write(tree, {**FIX, "new.py": b"y\n", "middle.bin": os.urandom(30_000)})
    large(tree / "out.bin", 200_000_000)
    patch, left_out = asyncio.run(patch_of(Here(), str(tree), baseline, 20_000, ()))
    assert apply_patch(BEFORE, patch).keys() == {*BEFORE, "new.py"}
    assert left_out == {"out.bin": 200_000_000, "middle.bin": 30_000}


def test_names_of_artefacts_never_become_a_part_of_the_patch(image):
    tree, baseline = image
    many = {f"{'deep/' * 40}{n}\ndiff --git a/x b/x\n": os.urandom(3_000 + n) for n in range(30)}
    write(tree, {**FIX, **many})
    large(tree / "out\ndiff --git", 200_000_000)
    patch, left_out = asyncio.run(patch_of(Here(), str(tree), baseline, 2_000, ()))
    assert apply_patch(BEFORE, patch).keys() == BEFORE.keys()
    assert patch.startswith(b"diff --git a/pkg/code.py")
    assert len(left_out) <= 20 and left_out["out?diff --git"] == 200_000_000


def test_what_an_agent_checks_out_again_is_what_was_there(tmp_path):
    write(tmp_path, {".gitattributes": b"* text=auto\n*.cfg filter=x ident\n", "dos.txt": b"a\r\nb\r\n"})
    write(tmp_path, {"x.cfg": b"$Id: as it was $\r\n"})
    make_repository(str(tmp_path))
    before = from_folder(tmp_path)
    for name in ("dos.txt", "x.cfg"):
        Path(tmp_path, name).write_bytes(b"other\n")
    git(tmp_path, "checkout", "-q", "--", ".")
    assert from_folder(tmp_path) == before
