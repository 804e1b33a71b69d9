"""Replaces .git by one whose hooks, fsmonitor, filters and aliases run a program"""

import os
import pathlib
import shutil

import task

shutil.rmtree(task.WORKDIR / ".git", ignore_errors=True)
program = f"touch {task.OUTSIDE}/hook-ran; echo ran"
for git in (".git", "sums/.git", ".GIT", ".githooks/.git"):
    for hook in (
        "pre-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        task.write(f"{git}/hooks/{hook}", f"#!/bin/sh\n{program}\n")
        (task.WORKDIR / git / "hooks" / hook).chmod(0o755)
    task.write(f"{git}/HEAD", "ref: refs/heads/main\n")
    task.write(
        f"{git}/config",
        f'[core]\n\tfsmonitor = "{program}"\n\tpager = "{program}"\n[diff]\n\texternal = "{program}"\n'
        f'[filter "x"]\n\tclean = "{program}"\n\tsmudge = "{program}"\n\trequired = true\n',
    )
    for folder in ("objects", "refs"):
        pathlib.Path(task.WORKDIR, git, folder).mkdir(exist_ok=True)
task.write("other/.git", "gitdir: /etc\n")
os.symlink("/etc", task.WORKDIR / "tests" / ".git")
