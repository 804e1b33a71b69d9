"""A repository of somebody else on this machine: git sees its objects, and nothing else of it has an effect."""

import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dgm.archive.git import LocalRepository
from dgm.benchmarks.mining.history import History
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.meta.seeds import read_seed_with_origin

pytestmark = pytest.mark.starts_processes

AGENT = b'[agent]\ncommand = ["a"]\ncheck = ["b"]\n'


def git(folder: Path, *words: str, given: str = "") -> str:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env, input=given, text=True, check=True, capture_output=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two commits of an agent, the second one signed and tagged."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in (b"", AGENT):
        (folder / "agent.toml").write_bytes(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "step")
    head, _, message = git(folder, "cat-file", "commit", "HEAD").partition("\n\n")
    mark = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aGVsbG8=\n -----END PGP SIGNATURE-----"
    signed = git(
        folder, "hash-object", "-t", "commit", "-w", "--stdin", given=f"{head}\n{mark}\n\n{message}\n"
    )
    git(folder, "update-ref", "HEAD", signed)
    git(folder, "tag", "-m", "x", "v1.2.3")
    git(folder, "tag", "latest")
    return folder


def steps(folder: Path) -> int:
    """Reads the whole history; the number of its steps."""
    history = History(folder)
    units = history.units()
    assert history.files(history.head) == {"agent.toml": Entry(AGENT)}
    assert [history.file(history.head, name) for name in ("agent.toml", "no\nfile")] == [AGENT, None]
    return len(units)


SETTINGS = {
    **dict.fromkeys(
        (
            *(
                "gpg.program",
                "gpg.ssh.program",
                "core.fsmonitor",
                "core.pager",
                "core.sshCommand",
                "diff.external",
            ),
            *("diff.x.textconv", "diff.x.command", "filter.x.smudge", "filter.x.process"),
            *("uploadpack.packObjectsHook", "remote.origin.uploadpack", "core.alternateRefsCommand"),
        ),
        "{}",
    ),
    "log.showSignature": "true",
    "extensions.partialClone": "origin",
    "remote.origin.promisor": "true",
    "remote.origin.url": "ext::{}",
    "protocol.ext.allow": "always",
    "alias.log": "!{}",
    "core.worktree": "/",
}


@pytest.mark.parametrize("bare", [False, True])
def test_no_setting_hook_or_attribute_takes_part(repo: Path, tmp_path: Path, bare: bool) -> None:
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\n")
    program.chmod(0o755)
    dot = repo / ".git"
    git(repo, "replace", "HEAD", "HEAD~1")
    for hook in ("post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"):
        (dot / "hooks").mkdir(exist_ok=True)
        shutil.copy(program, dot / "hooks" / hook)
    (dot / "info").mkdir(exist_ok=True)
    (dot / "info" / "attributes").write_text("* diff=x filter=x\n")
    (tmp_path / "more").write_text(f"[gpg]\n\tprogram = {program}\n")
    (dot / "info" / "grafts").write_text(f"{git(repo, 'rev-parse', 'HEAD')}\n")
    for key, value in {**SETTINGS, "include.path": str(tmp_path / "more")}.items():
        git(repo, "config", key, value.format(program))
    folder = Path(shutil.move(dot, tmp_path / "bare.git") if bare else repo)
    assert steps(folder) == 2
    assert History(folder).last_tag(History(folder).head) == "v1.2.3"
    source, origin = read_seed_with_origin(str(folder))
    assert source == {"agent.toml": Entry(AGENT)}
    assert origin and origin.commit == History(folder).head
    assert not ran.exists(), ran.read_text()


def worktree(repo: Path, tmp_path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "topic")
    return tmp_path / "other"


def shallow(repo: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", "--depth=1", repo.as_uri(), "shallow")
    return tmp_path / "shallow"


def submodule(repo: Path, tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "outer")
    allow = ("-c", "protocol.file.allow=always")
    git(tmp_path / "outer", *allow, "submodule", "--quiet", "add", str(repo), "inner")
    return tmp_path / "outer" / "inner"


def packed(repo: Path, _: Path) -> Path:
    git(repo, "pack-refs", "--all")
    git(repo, "gc", "-q")
    return repo


def detached(repo: Path, _: Path) -> Path:
    git(repo, "checkout", "-q", "--detach")
    (repo / "below").mkdir()
    return repo / "below"


@pytest.mark.parametrize(
    ("kind", "length"), [(worktree, 2), (shallow, 1), (submodule, 2), (packed, 2), (detached, 2)]
)
def test_ordinary_forms_are_read(
    repo: Path, tmp_path: Path, kind: Callable[[Path, Path], Path], length: int
) -> None:
    assert steps(kind(repo, tmp_path)) == length


@pytest.mark.timeout(30)
def test_threads_get_their_own_objects(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    contents = {f"{number}": str(number).encode() * 20_000 * (number % 3 + 1) for number in range(40)}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "many")
    history = History(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        read = threads.map(lambda name: history.file(history.head, name), [*contents] * 3)
        assert list(read) == [*contents.values()] * 3


def test_ids_of_64_digits_are_refused(tmp_path: Path) -> None:
    assert LocalRepository.find(tmp_path) is None
    git(tmp_path, "init", "-q", "--object-format=sha256", ".")
    git(tmp_path, "commit", "-qm", "only", "--allow-empty")
    with pytest.raises(UserError, match="40 digits"):
        steps(tmp_path)


def lead_away(way: str, dot: Path, private: Path, head: str) -> None:
    """Make a stranger's ``.git`` name a repository that is the user's."""
    match way:
        case "alternates":
            (dot / "objects" / "info" / "alternates").write_text(f"{private}/objects\n")
        case "objects" | "refs":
            shutil.rmtree(dot / way)
            (dot / way).symlink_to(private / way)
        case "commondir":
            (dot / "commondir").write_text(f"{private}\n")
        case "name":
            shutil.rmtree(dot)
            dot.write_text(f"gitdir: {private}\n")
        case "worktree" | "module":
            shutil.rmtree(dot)
            folder = dot.parent / ("y/worktrees/z" if way == "worktree" else "../.git/modules/x")
            folder.mkdir(parents=True)
            for name, text in {"HEAD": head, "gitdir": str(dot), "commondir": str(private)}.items():
                (folder / name).write_text(text)
            dot.write_text(f"gitdir: {folder}\n")
    if way in ("alternates", "objects"):
        (dot / "HEAD").write_text(head)


@pytest.mark.parametrize("way", ["alternates", "objects", "refs", "commondir", "name", "worktree", "module"])
def test_no_link_leads_to_another_repository(repo: Path, tmp_path: Path, way: str) -> None:
    stranger = tmp_path / "stranger"
    git(tmp_path, "init", "-q", "-b", "main", "stranger")
    git(stranger, "commit", "-qm", "x", "--allow-empty")
    lead_away(way, stranger / ".git", repo / ".git", git(repo, "rev-parse", "HEAD"))
    with pytest.raises(UserError):
        steps(stranger)


def test_a_partial_clone_is_named_with_what_completes_it(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", repo.as_uri(), "part")
    with pytest.raises(UserError, match=r"a partial clone, .* complete it: git -C .*/part fetch") as raised:
        steps(tmp_path / "part")
    subprocess.run(
        str(raised.value).partition("complete it: ")[2], shell=True, check=True, capture_output=True
    )
    assert steps(tmp_path / "part") == 2
