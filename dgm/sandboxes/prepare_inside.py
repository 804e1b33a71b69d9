"""Make an image fit for sandboxes: run once, as root, inside a container of that image, without network.

dgm gives it to the image's python3 (>= 3.9) as a text; standard library only. The image's list of users gets those of
sandboxes. Where a repository is wanted, the work tree of ``/testbed`` then stands in ``/opt/dgm/work`` with a ``.git``
of one commit, the same commit is in a bare repository beside it, and nothing is left of the image's history. The last
line of output is a JSON object: the MiB of a copy of the work tree, or why the image cannot be used.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ORIGIN = Path("/testbed")
PLACE = Path("/opt/dgm")
WORK, BASELINE, COMMANDS = PLACE / "work", PLACE / "baseline.git", PLACE / "bin"
ENVIRONMENTS = (Path("/opt/miniconda3/envs/testbed/bin"),)
"""Where published images keep the interpreter that the repository is installed for."""
STANDARD = ("/usr/local/bin", "/usr/bin", "/bin")
PAGE, MIB = 4096, 1024 * 1024
ATTRIBUTES = "* -text -ident -filter !eol !working-tree-encoding !diff !whitespace\n"
"""Files count byte for byte, whatever the repository's own attributes say."""
IGNORED = "__pycache__/\n*.py[co]\n.pytest_cache/\n"
"""What running tests leaves behind is no part of a patch."""
SETTINGS = """\
[core]
\trepositoryformatversion = 0
\tbare = {bare}
\tfileMode = true
\tsymlinks = true
\tautocrlf = false
\tlogAllRefUpdates = {logs}
\tcheckStat = minimal
\ttrustctime = false
[gc]
\tauto = 0
"""
WHEN = "2000-01-01T00:00:00Z"
NONE: Mapping[str, str] = {}


class Unusable(Exception):
    """The image cannot be used; says why."""


def main() -> int:
    """Prepare the image and report.

    The arguments are the first user id of sandboxes, the one after the last, and their group; and for a repository,
    ``own`` or ``new`` and its folder.
    """
    start, stop, group, *repository = sys.argv[1:]
    report: dict[str, object] = {"work_mb": 0}
    try:
        add_users(range(int(start), int(stop)), group)
        if repository:
            if repository[0] == "new":
                make_repository(repository[1])
            prepare_repository()
            report = {"work_mb": copied_mb()}
    except Unusable as error:
        report = {"unusable": str(error)}
    except subprocess.CalledProcessError as error:
        words = (error.stderr or b"").decode("utf-8", "replace").strip().split("\n")[0]
        report = {"unusable": f"{' '.join(error.cmd[:2])} says: {words or error.returncode}"}
    print(json.dumps(report))  # noqa: T201  (this line is the report)
    return 0


def make_repository(folder: str) -> None:
    """Move a folder to ``/testbed``, as a repository of all its files.

    Raises:
        Unusable: there is no such folder.
    """
    if not Path(folder).is_dir():
        raise Unusable(f"there is no folder {folder}")
    held = Path("/tmp/dgm-held")
    subprocess.run(["cp", "-a", f"{folder}/.", str(held)], check=True, capture_output=True)
    remove(ORIGIN)
    remove(held / ".git")
    held.rename(ORIGIN)
    git("init", "-q", cwd=ORIGIN)
    git("add", "-A", "-f", cwd=ORIGIN, settings=["safe.directory=*"])


def prepare_repository() -> None:
    """Replace the repository at ``/testbed`` by a work tree and a baseline."""
    if not os.path.lexists(ORIGIN / ".git"):
        raise Unusable(f"there is no git repository at {ORIGIN}")
    move_work_tree()
    make_own_repository(make_baseline())
    link_commands()
    remove(ORIGIN)
    ORIGIN.mkdir()


def move_work_tree() -> None:
    """Copy the work tree without any repository in it, readable by all."""
    remove(PLACE)
    WORK.mkdir(parents=True)
    parts = [str(path) for path in ORIGIN.iterdir() if path.name != ".git"]
    if parts:
        subprocess.run(["cp", "-a", "-t", str(WORK), "--", *parts], check=True, capture_output=True)
    for path in entries(WORK):
        mode = path.lstat().st_mode
        if path.name.lower() == ".git" or not (
            stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        ):
            remove(path)
        elif not stat.S_ISLNK(mode):
            executable = 0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0
            path.chmod(stat.S_IMODE(mode) & 0o755 | 0o444 | executable)


def make_baseline() -> str:
    """Make a bare repository whose only commit is the work tree, edits of the set-up included; return the commit."""
    listed = git("ls-files", "-s", "-z", cwd=ORIGIN, settings=["safe.directory=*", "core.fsmonitor=false"])
    # Another repository's commits are not ours to hold: what they brought is taken as ordinary files.
    tracked = [entry for entry in listed.split(b"\0") if entry and not entry.startswith(b"160000 ")]
    make_empty_repository()
    for entry in tracked:
        restore_mode(WORK / os.fsdecode(entry.partition(b"\t")[2]), executable=entry.startswith(b"100755 "))
    place = {"GIT_DIR": str(BASELINE), "GIT_WORK_TREE": str(WORK)}
    git("update-index", "-z", "--index-info", given=b"\0".join([*tracked, b""]), variables=place)
    git("add", "-A", "--", ".", cwd=WORK, variables=place)
    tree = git("write-tree", variables=place).decode().strip()
    commit = git("commit-tree", tree, "-m", "start", variables=place | signature()).decode().strip()
    git("update-ref", "--no-deref", "refs/heads/main", commit, variables=place)
    git("repack", "-a", "-d", "-q", variables=place)
    git("prune-packed", "-q", variables=place)
    git("fsck", "--no-progress", "--connectivity-only", variables=place)
    (BASELINE / "index").unlink()
    readable(BASELINE)
    return commit


def restore_mode(path: Path, *, executable: bool) -> None:
    """Restore a file's mode: published images have made every file executable."""
    if path.is_file() and not path.is_symlink():
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | 0o111 if executable else mode & ~0o111)


def make_own_repository(commit: str) -> None:
    """Make the agent's own repository: the same commit, and an index that holds for a copy with the same times."""
    own = WORK / ".git"
    shutil.copytree(BASELINE, own)
    (own / "config").write_text(SETTINGS.format(bare="false", logs="true"), encoding="ascii")
    place = {"GIT_DIR": str(own), "GIT_WORK_TREE": str(WORK)}
    git("read-tree", commit, variables=place)
    git("update-index", "-q", "--refresh", cwd=WORK, variables=place)
    left = git("status", "--porcelain", cwd=WORK, variables=place)
    if left:
        raise Unusable(f"its work tree is not clean: {left.decode('utf-8', 'replace').splitlines()[0]}")
    readable(own)


def make_empty_repository() -> None:
    """Make a bare repository without templates, hooks, remotes or logs, which ignores what the image's own does."""
    for part in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
        (BASELINE / part).mkdir(parents=True)
    (BASELINE / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    (BASELINE / "config").write_text(SETTINGS.format(bare="true", logs="false"), encoding="ascii")
    (BASELINE / "info" / "attributes").write_text(ATTRIBUTES, encoding="ascii")
    excluded = ORIGIN / ".git" / "info" / "exclude"
    more = excluded.read_bytes() + b"\n" if excluded.is_file() else b""
    (BASELINE / "info" / "exclude").write_bytes(IGNORED.encode() + more)


def git(
    *words: str,
    cwd: Path = Path("/"),
    given: bytes = b"",
    settings: Sequence[str] = (),
    variables: Mapping[str, str] = NONE,
) -> bytes:
    """Run git without the image's own configuration, and return what it prints."""
    chosen = [word for setting in settings for word in ("-c", setting)]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        **variables,
    }
    command = ["git", *chosen, "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, input=given, capture_output=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, ["git", *words], done.stdout, done.stderr)
    return done.stdout


def signature() -> dict[str, str]:
    """Return the variables of a constant author and time: the commit depends on the work tree alone."""
    who = {f"GIT_{role}_{what}": "dgm" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return who | {f"GIT_{role}_DATE": WHEN for role in ("AUTHOR", "COMMITTER")}


def add_users(uids: range, group: str) -> None:
    """Name the users of sandboxes, since programs ask for their own: all have one name, one home and one shell."""
    users, groups = Path("/etc/passwd"), Path("/etc/group")
    for file in (users, groups):
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.touch()
    ours = {str(uid) for uid in uids}
    lines = users.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    shell = next(shell for shell in ("/bin/bash", "/bin/sh") if Path(shell).exists())
    lines = [line for line in lines if not ours.intersection(line.split(":")[2:3])]
    lines += [f"agent:x:{uid}:{group}::/tmp:{shell}" for uid in uids]
    users.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    lines = groups.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    if not any(line.split(":")[2:3] == [group] for line in lines):
        name = "dgm-agent" if any(line.startswith("agent:") for line in lines) else "agent"
        lines.append(f"{name}:x:{group}:")
        groups.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")


def link_commands() -> None:
    """Link the commands of the repository's own environment where an agent finds them.

    ``python`` is the repository's, ``python3`` stays the image's: agents run with that, and the repository's may be
    too old for them.
    """
    COMMANDS.mkdir()
    for environment in ENVIRONMENTS:
        for command in sorted(environment.iterdir()) if environment.is_dir() else ():
            wanted = command.name in ("python", "pip", "pytest")
            known = shutil.which(command.name, path=os.pathsep.join(STANDARD))
            if wanted or not (known or command.name.startswith("python3")):
                (COMMANDS / command.name).symlink_to(command)


def copied_mb() -> int:
    """Return the MiB of memory of a copy of the work tree: whole pages, and an inode for each entry."""
    pages = inodes = 1
    for path in entries(WORK):
        inodes += 1
        info = path.lstat()
        pages += -(-info.st_size // PAGE) if stat.S_ISREG(info.st_mode) else 1
    return max(pages, inodes) * PAGE // MIB + 1


def entries(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder; what is removed meanwhile is not entered."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from entries(path)


def readable(folder: Path) -> None:
    """Let everybody read."""
    for path in [folder, *entries(folder)]:
        path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))


def remove(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


if __name__ == "__main__":
    sys.exit(main())
