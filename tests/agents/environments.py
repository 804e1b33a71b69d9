"""Virtual environments for programs of others, with pinned versions, kept in the user's cache between runs."""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import platformdirs

HERE = Path(__file__).parent


def environment(name: str, *packages: str) -> Path:
    """The folder of programs of an environment with these packages; made where there is none with these versions.

    ``NAME-constraints.txt`` beside this file pins every version.
    """
    constraints = HERE / f"{name}-constraints.txt"
    wanted = hashlib.sha256(f"{sys.version}{packages}{constraints.read_text()}".encode()).hexdigest()
    folder = Path(platformdirs.user_cache_dir("dgm-tests")) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        # Processes of one session of pytest may want it at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / ".made"
        if not mark.exists() or mark.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [
                str(folder / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]
            subprocess.run([*pip, "--constraint", str(constraints), *packages], check=True)
            mark.write_text(wanted)
    return folder / "bin"
