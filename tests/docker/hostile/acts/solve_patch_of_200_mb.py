"""Leaves 200 MB of random bytes"""

import os

import task

for n in range(20):
    task.attempt((task.WORKDIR / f"large{n}.bin").write_bytes, os.urandom(10_000_000))
