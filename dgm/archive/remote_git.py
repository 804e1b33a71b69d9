"""Git that fetches from an address, with the user's own configuration: keys, helpers and proxies are needed for that.

It runs in a folder of dgm's, so that no repository around the user's current folder takes part. What it fetches is read
by ``LocalRepository`` and never checked out.
"""

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

from dgm.errors import Infrastructure, UserError
from dgm.processes import run_apart

FETCH_S = 600.0
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false")
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_TEMPLATE_DIR",
)


def run_remote_git(*words: str, folder: Path, transports: Collection[str] = ()) -> str:
    """Run git in a folder of dgm's; return its output.

    Args:
        words: the command.
        folder: its working folder.
        transports: names of git's transports that may be used; default: those of git's own configuration but ``ext``.

    Raises:
        UserError: git is not installed.
        Infrastructure: it fails, or takes more than ten minutes; the message is git's last line.
    """
    settings = [word for setting in (*_SETTINGS, "protocol.ext.allow=never") for word in ("-c", setting)]
    variables = {
        **{key: value for key, value in os.environ.items() if key not in _OTHER_REPOSITORY},
        **({"GIT_ALLOW_PROTOCOL": ":".join(transports)} if transports else {}),
        "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C.UTF-8",
    }
    try:
        done = run_apart(["git", *settings, *words], cwd=folder, env=variables, timeout_s=FETCH_S)
    except FileNotFoundError as error:
        raise UserError("git is not installed; install it with your system's package manager") from error
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(f"git {words[0]} took more than {FETCH_S:.0f} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Infrastructure(f"git: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")
