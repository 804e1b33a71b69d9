"""Predictions as other programs write them, applied to real files by the program that every grader runs."""

import asyncio
import os
import shutil
import subprocess

import pytest

from dgm.benchmarks import apply_patch, grade
from dgm.benchmarks.prediction_patches import normalised_patch, read_applied
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.test_spec import TestSpec
from dgm.domain import Entry, Verdict
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.choose import choose

pytestmark = pytest.mark.starts_processes

BEFORE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
AFTER = BEFORE.replace(b"four\n", b"FOUR\n")
GIT_ALONE = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder, *words):
    """Runs git as somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, env=GIT_ALONE)
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of text.txt, and its change in the work tree."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "text.txt").write_bytes(BEFORE)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    (folder / "text.txt").write_bytes(AFTER)
    return folder


def applied(tmp_path, patch, before=BEFORE, path=None, name="text.txt"):
    """What applying a prediction makes of a file, and what is said."""
    workdir, file = tmp_path / "work", tmp_path / "prediction.patch"
    shutil.rmtree(workdir, ignore_errors=True)
    (workdir / name).parent.mkdir(parents=True)
    (workdir / name).write_bytes(before)
    given = normalised_patch(patch)
    file.write_bytes(given.data)
    with pytest.MonkeyPatch.context() as patched:
        if path is not None:
            patched.setenv("PATH", path)
        said = read_applied(apply_patch.main(file, workdir).encode())
    return (workdir / name).read_bytes(), said.refused, (*given.notes, *said.notes)


@pytest.fixture
def only_git(tmp_path):
    """A PATH with git and without GNU patch, as of an image that lacks it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git"))
    return str(folder)


def test_an_exact_patch_needs_no_note(repository, tmp_path):
    assert applied(tmp_path, git(repository, "diff")) == (AFTER, "", ())


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.removesuffix(b"\n"),
        lambda patch: b"\xef\xbb\xbf" + patch,
        lambda patch: b"\n\n" + patch + b"\n",
        lambda patch: b"Here it is:\n```diff\n" + patch + b"```\n",
    ],
    ids=["no last newline", "BOM", "blank lines around", "fenced"],
)
def test_what_other_programs_put_around_a_patch_does_not_matter(repository, tmp_path, change):
    assert applied(tmp_path, change(git(repository, "diff"))) == (AFTER, "", ())


def test_a_patch_of_crlf_applies_to_a_file_of_lf_with_a_note(repository, tmp_path):
    after, refused, notes = applied(tmp_path, git(repository, "diff").replace(b"\n", b"\r\n"))
    assert (after, refused) == (AFTER, "")
    assert notes == ("the lines of the patch ended in CR LF and were read without CR",)


@pytest.mark.parametrize("converted", [False, True])
def test_a_patch_applies_to_a_file_of_crlf_by_content_with_a_note(repository, tmp_path, only_git, converted):
    patch = git(repository, "diff")
    patch = patch.replace(b"\n", b"\r\n") if converted else patch
    after, refused, notes = applied(tmp_path, patch, BEFORE.replace(b"\n", b"\r\n"), only_git)
    assert (after, refused) == (AFTER.replace(b"\n", b"\r\n"), "")
    assert notes[-1] == "the ends of its lines were taken as the files have them"


def test_hunks_of_crlf_under_headers_of_lf_apply_to_a_file_of_lf(repository, tmp_path):
    head, at, hunk = git(repository, "diff").partition(b"@@")
    patch = head + at + hunk.replace(b"\n", b"\r\n")
    assert applied(tmp_path, patch)[:2] == (AFTER, "")


def test_a_change_of_ends_is_a_change(repository, tmp_path):
    (repository / "text.txt").write_bytes(BEFORE.replace(b"four\n", b"four\r\n"))
    patch = git(repository, "diff")
    assert applied(tmp_path, patch) == (BEFORE.replace(b"four\n", b"four\r\n"), "", ())


def test_a_series_of_mails_is_applied_as_one(repository, tmp_path):
    git(repository, "commit", "-qam", "first\n\n--- a/not.txt\n+++ not a header")
    (repository / "text.txt").write_bytes(AFTER.replace(b"FOUR", b"4"))
    git(repository, "commit", "-qam", "second")
    mails = git(repository, "format-patch", "--stdout", "HEAD~2")
    assert mails.startswith(b"From ")
    for patch in (mails, mails.replace(b"\n", b"\r\n"), mails.rstrip()):
        assert applied(tmp_path, patch)[:2] == (BEFORE.replace(b"four", b"4"), "")


def test_a_removed_comment_of_sql_is_no_name_of_a_file(tmp_path):
    before = b"one\n-- see /etc/x\nthree\nfour\n"
    patch = b"--- a/text.txt\n+++ b/text.txt\n@@ -1,4 +1,3 @@\n 1\n--- see /etc/x\n three\n four\n"
    assert applied(tmp_path, patch, before)[:2] == (b"one\nthree\nfour\n", "")


def test_a_patch_never_reaches_git_by_headers_that_gnu_patch_alone_reads(tmp_path):
    patch = b" --- a/.git/hooks\n +++ b/.git/hooks\n @@ -1,2 +1,2 @@\n  one\n -two\n +2\n"
    after, refused, _ = applied(tmp_path, patch, b"one\ntwo\n", name=".git/hooks")
    assert (after, bool(refused)) == (b"one\ntwo\n", True)


def test_context_that_differs_is_what_the_harness_lets_pass(repository, tmp_path):
    before = BEFORE.replace(b"two", b"2").replace(b"six", b"6")
    patch = git(repository, "diff")
    after, refused, notes = applied(tmp_path, patch, before)
    assert (after, refused) == (before.replace(b"four", b"FOUR"), "")
    assert len(notes) == 1


@pytest.mark.parametrize("has_patch", [True, False])
def test_blank_context_that_was_stripped_from_the_end_is_put_back(tmp_path, only_git, has_patch):
    patch = b"--- a/text.txt\n+++ b/text.txt\n@@ -1,4 +1,4 @@\n-one\n+ONE\n two\n \n "
    path = None if has_patch else only_git
    assert applied(tmp_path, patch.strip(), b"one\ntwo\n\n\n", path)[:2] == (b"ONE\ntwo\n\n\n", "")


def test_hunks_without_context_are_placed_by_their_lines(repository, tmp_path):
    assert applied(tmp_path, git(repository, "diff", "-U0"))[:2] == (AFTER, "")


@pytest.mark.parametrize("has_patch", [True, False])
def test_lines_that_are_not_there_are_refused_and_nothing_is_changed(
    repository, tmp_path, only_git, has_patch
):
    before = BEFORE.replace(b"four", b"vier")
    after, refused, notes = applied(
        tmp_path, git(repository, "diff"), before, None if has_patch else only_git
    )
    assert (after, notes) == (before, ())
    assert refused == "error: patch failed: text.txt:1"


def test_a_script_of_ed_is_no_patch(tmp_path):
    ed = b"--- a/text.txt\n+++ b/text.txt\n@@ -9 +9 @@\n-x\n+y\n1c\n!touch made\n.\nw\nq\n"
    after, refused, _ = applied(tmp_path, ed)
    assert after == BEFORE and refused
    assert not list(tmp_path.rglob("made"))


def test_an_image_without_git_says_nothing_of_the_patch(repository, tmp_path):
    with pytest.raises(Infrastructure, match="no git in the image"):
        applied(tmp_path, git(repository, "diff"), path="/nowhere")


def command_graded(patch, workspace):
    try:
        engine = choose("bubblewrap")
    except UserError as error:
        pytest.skip(str(error))
    exam = grade.Exam(
        workspace,
        {},
        TestSpec(runner="exit", command=("grep", "-q", "FOUR", "text.txt"), restored=()),
        Limits(image="python", workdir="/work/repo", timeout_s=60, test_timeout_s=60),
    )
    return asyncio.run(grade.examine(exam, patch, engine, {}))


def test_a_task_graded_by_a_command_takes_them_alike(repository):
    patch = git(repository, "diff").replace(b"\n", b"\r\n").removesuffix(b"\r\n")
    graded = command_graded(b"\xef\xbb\xbf" + patch, {"text.txt": Entry(BEFORE)})
    assert graded.verdict is Verdict.RESOLVED
    assert graded.reason == "the tests pass; the lines of the patch ended in CR LF and were read without CR"


def test_a_patch_that_takes_all_the_processor_time_is_at_fault(repository, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    program.chmod(0o755)
    monkeypatch.setattr(apply_patch, "PROCESSOR_S", 1)
    with pytest.raises(SystemExit, match="refused it could not be applied within 1 s of processor time"):
        applied(tmp_path, git(repository, "diff"), path=f"{program.parent}")


def test_a_slow_machine_is_not_the_patchs_fault(repository, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec /bin/sleep 9\n")
    program.chmod(0o755)
    monkeypatch.setattr(apply_patch, "TIMEOUT_S", 0.1)
    with pytest.raises(SystemExit, match="broken applying a patch took more than"):
        applied(tmp_path, git(repository, "diff"), path=f"{program.parent}")


def test_the_last_line_tells_what_became_of_a_patch():
    assert read_applied(b"refused a warning\napplied one; two\n").notes == ("one", "two")
    assert read_applied(b"applied\nrefused no such file").refused == "no such file"
    with pytest.raises(Infrastructure, match="could not be tried: Segmentation fault"):
        read_applied(b"applied\nSegmentation fault\n")
