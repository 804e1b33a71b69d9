"""Applies a prediction inside the sandbox that grades it: ``python3 -I apply_patch.py PATCH WORKDIR``.

dgm does not import it but puts it into the sandbox as a file; standard library only (Python >= 3.9). It tries ``git
apply``, then the same with the other ends of lines, then with hunks counted anew and blanks ignored, then GNU patch as
SWE-bench's harness runs it. Each try changes all files or none. The last line that it prints says ``applied`` with
notes, ``refused`` with git's reason, or ``broken`` if nothing can be applied at all.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

FUZZ = 5
"""Lines of context that may differ at each end of a hunk, as the harness allows GNU patch."""
TIMEOUT_S, PROCESSOR_S = 240, 60
"""Wall time of one try, after which the machine is to blame, and processor time, after which the patch is."""
LINE_ENDS = "the ends of its lines were taken as the files have them"
NAMES = re.compile(rb"(?:diff --git|---|\+\+\+|Index:|(?:rename|copy) (?:from|to)) ")
OUTSIDE = re.compile(rb"(?:^|[\s\"])/|//|(?:^|[\s\"/])(?:\.\.|\.git)(?:[\s\"/]|$)", re.IGNORECASE)


def main(patch: Path, workdir: Path) -> str:
    """Apply the patch; return the line that tells the result."""
    if shutil.which("git") is None:
        return "broken there is no git in the image to apply a patch with"
    data = patch.read_bytes()
    refusal = git_apply(data, workdir) if data else ""
    if not refusal:
        return "applied "
    for fitted in (with_ends(data, b""), with_ends(data, b"\r")):
        if fitted != data and not git_apply(fitted, workdir):
            return f"applied {LINE_ENDS}"
    if not git_apply(data, workdir, "--recount", "--ignore-whitespace"):
        return "applied it fits only by git apply --recount --ignore-whitespace"
    if not leads_out(data) and gnu_patch(patch, workdir):
        return f"applied it fits only by patch --fuzz={FUZZ}"
    return "refused " + refusal


def with_ends(patch: bytes, end: bytes) -> bytes:
    """Return the patch with these bytes before the line feed of each line of a hunk."""
    lines = patch.replace(b"\r\n", b"\n").split(b"\n")
    return b"\n".join(
        line + end if line[:1] in (b" ", b"+", b"-") and not NAMES.match(line) else line for line in lines
    )


def run(words: list[str], workdir: Path, env: dict[str, str], data: bytes = b"") -> tuple[int, bytes]:
    """Run a program; return its status and what it printed. End this program if that reaches a limit."""
    try:
        done = subprocess.run(
            words, cwd=workdir, env=env, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S + 1)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        sys.exit(f"broken applying a patch took more than {TIMEOUT_S} s")
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        sys.exit(f"refused it could not be applied within {PROCESSOR_S} s of processor time")
    return done.returncode, done.stdout


def git_apply(patch: bytes, workdir: Path, *options: str) -> str:
    """Apply all of it or nothing, outside of any repository; return git's reason, or nothing if it is applied."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": home, "GIT_DIR": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
        }  # fmt: skip
        words = ["git", "apply", "--whitespace=nowarn", *options, "-"]
        status, output = run(words, workdir, environment, patch)
    lines = [line for line in output.decode("utf-8", "replace").split("\n") if line.strip()]
    return (lines[0][:300] if lines else "git apply failed") if status else ""


def leads_out(patch: bytes) -> bool:
    """Return whether a header names a file that git refuses.

    GNU patch would cut an absolute path to one in the workdir.
    """
    lines = patch.split(b"\n")
    headers = [line for line in lines if NAMES.match(line) and line[:4] not in (b"--- ", b"+++ ")]
    for number, line in enumerate(lines):
        if line.startswith(b"+++ ") and number and lines[number - 1].startswith(b"--- "):
            headers += lines[number - 1 : number + 1]
    return any(OUTSIDE.search(line.partition(b" ")[2].replace(b"/dev/null", b"")) for line in headers)


def gnu_patch(patch: Path, workdir: Path) -> bool:
    """Apply it as the harness does at last, but only if all of it fits; never as a script of ed, nor into ``.git``."""
    program = shutil.which("patch")
    if program is None:
        return False
    words = [program, "--unified", "--batch", f"--fuzz={FUZZ}", "-p1", "--no-backup-if-mismatch"]
    for more in (["--dry-run"], []):
        status, output = run([*words, *more, "-i", str(patch.resolve())], workdir, dict(os.environ))
        files = [line for line in output.split(b"\n") if line.startswith(b"checking ")]
        if status or any(OUTSIDE.search(line) for line in files):
            return False
    return True


if __name__ == "__main__":
    sys.stdout.write(f"\n{main(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
