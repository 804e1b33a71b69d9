"""Starts an exported agent in a task's container of Harbor; standard library only, Python >= 3.9.

dgm does not import this file but writes it into an exported package, beside the programs that start agents in its own
sandboxes. With ``--check`` it only asks the agent whether it could start.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import agent_start  # type: ignore[import-not-found]
import launcher  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent
CHECK_S = 60.0


def main() -> int:
    """Run the agent in the working folder; return its exit status, 124 after its time limit."""
    facts = json.loads((HERE / "facts.json").read_text(encoding="utf-8"))
    packages = HERE / "packages"
    environment = {
        **os.environ,
        **({"PYTHONPATH": str(packages)} if packages.is_dir() else {}),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    agent_start.FOLDER = str(HERE / "python")
    env = agent_start.complete(environment, "solve", facts["env"])
    if sys.argv[1:] == ["--check"]:
        return run(facts["check"], env, CHECK_S)
    workdir = Path.cwd()
    job = json.loads((HERE / "job.json").read_text(encoding="utf-8"))
    job = {"kind": "solve", "workdir": str(workdir), "evidence": None, **facts["actions"], **job}
    file = HERE / "agent-job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    # A task that works in / has no folder that could be searched, or made a repository.
    is_folder = len(workdir.parts) > 1
    hidden = launcher.hide(workdir, facts["hidden"] if is_folder else [])
    needs_git = is_folder and not os.path.lexists(workdir / ".git")
    if needs_git:
        launcher.make_repository(str(workdir))
    try:
        return run([*facts["command"], str(file)], env, float(job["time_limit_s"]))
    finally:
        launcher.restore(workdir, hidden)
        if needs_git:
            shutil.rmtree(workdir / ".git", ignore_errors=True)


def run(command: list[str], env: dict[str, str], limit_s: float) -> int:
    """Run a command of the agent in its folder, with nothing on standard input."""
    try:
        done = subprocess.run(
            command, cwd=HERE / "agent", env=env, stdin=subprocess.DEVNULL, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"ended after {limit_s:g} s")  # noqa: T201
        return 124
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
