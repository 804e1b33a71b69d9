"""Writes outside of its workdir"""

import pathlib

import task

for place in (
    task.OUTSIDE,
    "/etc",
    "/usr/bin",
    "/usr/lib/python3",
    "/run/dgm",
    "/root",
    "/var/lib",
    "/",
    "/proc/sys/kernel",
    "/sys/fs/cgroup",
    "/dev",
    "/job",
    "/agent",
    "/tmp",
):
    task.attempt(pathlib.Path(place).mkdir, 0o777, True, True)
    task.attempt(pathlib.Path(place, "pwned").write_text, "written from inside")
task.attempt(pathlib.Path("/proc/sysrq-trigger").write_text, "c")
task.attempt(pathlib.Path("/proc/self/oom_score_adj").write_text, "-1000")
