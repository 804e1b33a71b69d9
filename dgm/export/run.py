#!/usr/bin/env python3
"""Let the agent in the folder ``agent`` beside this file work on a copy of a repository; print its change as a diff.

Standard library only, Python 3.9 or newer. An agent runs what a model writes. So bubblewrap runs the agent, with the
file system read-only and home folders hidden; without it only where you say --unconfined.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORIGIN = json.loads((HERE / "agent.json").read_text(encoding="utf-8"))
PACKAGES = HERE / "packages"
HIDDEN = {"dev", "home", "lost+found", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp", "var"}
TOO = "HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE ANTHROPIC_BASE_URL"
GRACE_S = 3.0
SETTINGS = "core.hooksPath=/dev/null core.fsmonitor=false core.autocrlf=false core.attributesFile=/dev/null"
SETTINGS += " core.excludesFile=/dev/null user.name=dgm user.email=dgm@localhost commit.gpgSign=false"
QUIET = "core.fsmonitor=false core.hooksPath=/dev/null core.untrackedCache=false"
ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
PLAIN = "* -text !eol !filter !ident !diff !working-tree-encoding\n"
DIFF = "diff --cached --binary --full-index --no-renames --no-ext-diff --no-textconv HEAD"


def fail(why: str) -> SystemExit:
    """The end of the program, with one line."""
    sys.stderr.write(f"run.py: {why}\n")
    return SystemExit(2)


def git(*words: str, where: Path, given: bytes = b"", **env: str) -> bytes:
    """What git prints; no configuration of the user's or the machine's takes part."""
    around = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", *(word for setting in SETTINGS.split() for word in ("-c", setting)), *words]
    done = subprocess.run(
        command, cwd=where, env={**around, **ALONE, **env}, input=given, capture_output=True, check=False
    )
    if done.returncode:
        raise fail(f"git {words[-1]}: {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
    return done.stdout


def listed(repo: Path, private: Path) -> "list[Path] | None":
    """The files that the owner of a repository would commit; None where there is none, or one that ignores it.

    Git runs in a folder of our own, on the index and the ignore rules: no setting of the repository takes part.
    """
    top = next((each for each in (repo, *repo.parents) if os.path.lexists(each / ".git")), None)
    if top is None:
        return None
    git_dir = top / ".git"
    if git_dir.is_file():
        git_dir = top / git_dir.read_text().partition("gitdir: ")[2].strip()
    if not (git_dir / "HEAD").is_file():
        raise fail(f"{top}: git cannot read this repository")
    linked = git_dir / "commondir"
    common = git_dir / linked.read_text().strip() if linked.is_file() else git_dir
    for part in ("objects", "refs", "info"):
        (private / part).mkdir(parents=True)
    (private / "HEAD").write_text("ref: refs/heads/none\n")
    words = [f"--{key}={value}" for key, value in (("git-dir", private), ("work-tree", top))]
    words += [word for setting in QUIET.split() for word in ("-c", setting)]
    config = ["config", "--file", str(common / "config"), "--no-includes", "--get"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env = {**env, "GIT_INDEX_FILE": str(git_dir / "index"), "GIT_OBJECT_DIRECTORY": str(common / "objects")}

    def run(*more: str) -> "tuple[int, bytes]":
        done = subprocess.run(["git", *words, *more], cwd=repo, env=env, capture_output=True, check=False)
        return done.returncode, done.stdout

    if b"sha256" in run(*config, "extensions.objectFormat")[1]:
        kind = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
        (private / "config").write_text(kind)
    rules = os.fsdecode(run(*config[:-1], "--type=path", "--get", "core.excludesFile")[1].strip())
    words += ["-c", f"core.excludesFile={rules}"] if rules else []
    for file in (*git_dir.glob("sharedindex.*"), common / "info" / "exclude"):
        (private / ("info" if file.name == "exclude" else ".") / file.name).symlink_to(file)
    status, names = run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    if status:
        raise fail(f"{top}: git cannot read this repository")
    if not names and top != repo:
        return None
    return [Path(os.fsdecode(name)) for name in names.split(b"\0") if name]


def copy(repo: Path, work: Path, private: Path) -> None:
    """The files of a repository that its owner would commit; of a folder that is none, all files."""
    names = listed(repo, private)
    if names is None:
        names = [
            Path(at, name).relative_to(repo) for at, dirs, files in os.walk(repo) for name in dirs + files
        ]
    for name in names:
        source, target = repo / name, work / name
        if not {".git", "__pycache__"} & {*name.parts} and (source.is_symlink() or source.is_file()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def confined(scratch: Path) -> "list[str]":
    """How bubblewrap is started: the host's network, its files to read, but no home folder and no socket."""
    words = ["bwrap", "--die-with-parent", "--unshare-all", "--share-net", "--cap-drop", "ALL"]
    for top in sorted(Path("/").iterdir()):
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir() and top.name not in HIDDEN | {"work", "agent", "job", "packages"}:
            words += ["--ro-bind", str(top), str(top)]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    # Where names are looked up, and this Python, may lie in a hidden folder.
    for needed in (os.path.realpath("/etc/resolv.conf"), sys.base_prefix):
        if Path(needed).parts[1] in HIDDEN:
            words += ["--ro-bind-try", needed, needed]
    for name in ("work", "agent", "job"):
        words += ["--bind", str(scratch / name), f"/{name}"]
    return [
        *words,
        "--ro-bind-try",
        str(PACKAGES),
        "/packages",
        "--remount-ro",
        "/",
        "--chdir",
        "/agent",
        "--",
    ]


def perform(given: argparse.Namespace, scratch: Path) -> int:
    """Lets the agent work on ``scratch/work/repo``, for its time limit at most; its exit status, 0 if it was ended."""
    root = str(scratch) if given.unconfined else ""
    job = {"kind": "solve", "problem": given.problem, "workdir": f"{root}/work/repo", "evidence": None}
    job = {**job, "time_limit_s": given.timeout, "model": given.model}
    (scratch / "job" / "job.json").write_text(json.dumps(job), encoding="utf-8")
    env = {
        **{name: os.environ[name] for name in TOO.split() if name in os.environ},
        "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch / "job") if given.unconfined else "/tmp",
        "LANG": "C.UTF-8",
        "OPENAI_BASE_URL": given.base_url,
        "OPENAI_API_KEY": given.key,
        "ANTHROPIC_API_KEY": os.environ.get("ANTHROPIC_API_KEY", given.key),
        "DGM_MODEL": given.model,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(PACKAGES) if given.unconfined else "/packages",
    }
    around = [] if given.unconfined else confined(scratch)
    if around and subprocess.run([*around, "true"], env=env, check=False).returncode:
        raise fail("bubblewrap confines nothing here; run this in a container of your own, with --unconfined")
    process = subprocess.Popen(
        [*around, *ORIGIN["command"], f"{root}/job/job.json"],
        cwd=scratch / "agent",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        return process.wait(given.timeout)
    except subprocess.TimeoutExpired:
        sys.stderr.write("run.py: the agent ran out of time\n")
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        return 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def change(given: argparse.Namespace, scratch: Path) -> "tuple[bytes, int]":
    """What the agent changed in the copy, as a patch against a baseline that it was not given; its exit status."""
    repo, base = scratch / "work" / "repo", scratch / "base.git"
    for folder in (repo, scratch / "job"):
        folder.mkdir(parents=True)
    shutil.copytree(HERE / "agent", scratch / "agent", symlinks=True)
    copy(given.repo, repo, scratch / "list.git")
    git("init", "-q", where=repo)
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_text(PLAIN)
    git("add", "-A", "-f", where=repo)
    git("commit", "-q", "--allow-empty", "-m", "start", where=repo)
    shutil.copytree(repo / ".git", base)
    status = perform(given, scratch)
    for at, folders, files in os.walk(repo):
        for gone in (Path(at, name) for name in {".git", "__pycache__"} & {*folders, *files}):
            shutil.rmtree(gone, True) if gone.is_dir() and not gone.is_symlink() else gone.unlink()
    place = (f"--git-dir={base}", f"--work-tree={repo}")
    git(*place, "add", "-A", where=repo)
    return git(*place, *DIFF.split(), where=repo), status


def main() -> int:
    """The program. 0: there is a change; 1: there is none; 2: it could not be tried."""
    parser = argparse.ArgumentParser(prog="run.py", description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument("--repo", type=Path, required=True, help="the repository; only --apply changes it")
    parser.add_argument("--model", default=os.environ.get("DGM_MODEL", ORIGIN["model"]))
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="of the model's server")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--apply", action="store_true", help="change the repository, too")
    parser.add_argument("--unconfined", action="store_true", help="without bubblewrap: in your own container")
    parser.add_argument("problem", help="what is to be done, in words")
    given = parser.parse_args()
    given.key = os.environ.get("OPENAI_API_KEY", "")
    given.repo = given.repo.resolve()
    if not given.repo.is_dir():
        raise fail(f"--repo {given.repo}: not a folder")
    if not given.model:
        raise fail("say which model to ask the server for: --model NAME")
    if not (given.key or given.base_url):
        raise fail("no model: set OPENAI_API_KEY, or name a server of your own with --base-url URL")
    if ORIGIN["requires"] and not PACKAGES.is_dir():
        needed = " ".join(f"'{name}'" for name in ORIGIN["requires"])
        raise fail(f"the agent needs packages: python3 -m pip install --target {PACKAGES} {needed}")
    if not (given.unconfined or shutil.which("bwrap")):
        raise fail("bubblewrap is not installed; install it, or say --unconfined in a container of your own")
    given.base_url, given.key = given.base_url or "https://api.openai.com/v1", given.key or "none"
    with tempfile.TemporaryDirectory(prefix="agent-") as scratch:
        patch, status = change(given, Path(os.path.realpath(scratch)))
    if status:
        sys.stderr.write(f"run.py: the agent failed (it ended with {status}); look at what it said above\n")
    sys.stdout.buffer.write(patch)
    sys.stdout.flush()
    if patch and given.apply:
        outside = {"GIT_CEILING_DIRECTORIES": str(given.repo), "GIT_DIR": os.devnull}
        git("apply", "--whitespace=nowarn", "-", where=given.repo, given=patch, **outside)
    return 0 if patch else 2 if status else 1


if __name__ == "__main__":
    sys.exit(main())
