"""Leaves a hollow file of a terabyte"""

import os

import task

with (task.WORKDIR / "hollow").open("wb") as file:
    os.ftruncate(file.fileno(), 1 << 40)
