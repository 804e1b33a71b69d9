"""Leaves 30 MB of random bytes, which may be read back but is far too large a patch"""

import os

import task

(task.WORKDIR / "large.bin").write_bytes(os.urandom(30_000_000))
