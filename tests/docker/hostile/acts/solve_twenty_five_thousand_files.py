"""Leaves 25,000 files"""

import task

folder = task.WORKDIR / "many"
folder.mkdir()
for n in range(25_000):
    (folder / str(n)).touch()
