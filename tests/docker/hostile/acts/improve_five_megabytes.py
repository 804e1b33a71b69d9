"""Grows to 5 MB"""

import os

import task

(task.WORKDIR / "large.bin").write_bytes(os.urandom(5_000_000))
