"""Leaves a binary patch, and turns a source file into bytes"""

import os

import task

(task.WORKDIR / "data.bin").write_bytes(bytes(range(256)) * 500)
(task.WORKDIR / "sums" / "__init__.py").write_bytes(b"\0\xff\xfe" + os.urandom(5000))
