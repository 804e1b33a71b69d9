"""Plants hooks, filters, odd names and links that point out in its own source"""

import os

import task

for folder in (".git/hooks", "sub/.git/hooks", ".githooks"):
    task.write(f"{folder}/post-checkout", f"#!/bin/sh\ntouch {task.OUTSIDE}/hook-ran\n")
    (task.WORKDIR / folder / "post-checkout").chmod(0o755)
task.write(".gitattributes", "* filter=x diff=x textconv=x\n")
task.write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = ../x\n\tupdate = !touch /tmp/pwned\n')
task.write("new\nline.txt", "x")
task.write("\x1b[31mred.txt", "x")
os.symlink(task.OUTSIDE, task.WORKDIR / "outside")
os.symlink("/etc/passwd", task.WORKDIR / "passwd")
os.symlink("../../../../..", task.WORKDIR / "up")
