"""Plants symbolic links that point out, absolute, upwards and round in circles"""

import os

import task

for n, target in enumerate(
    (
        task.OUTSIDE,
        "/etc/passwd",
        "/",
        "/proc/self/environ",
        "../../../../../../etc",
        "/run/dgm/gateway.sock",
        "loop",
        "/dev/zero",
        "x" * 4000,
    )
):
    os.symlink(target, task.WORKDIR / f"link{n}")
os.symlink("loop", task.WORKDIR / "loop")
(task.WORKDIR / "sums" / "__init__.py").unlink()
os.symlink(task.OUTSIDE + "/kept.txt", task.WORKDIR / "sums" / "__init__.py")
os.rename(task.WORKDIR / "tests", task.WORKDIR / "was-tests")
os.symlink(task.OUTSIDE, task.WORKDIR / "tests")
