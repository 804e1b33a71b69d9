"""A builder whose sandboxes are folders: real processes, no walls; for commands of our own."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from dgm.protocols import BuildError, BuildRun


class FolderBuilder:
    """Opens folders, and notes the commands that run in them."""

    def __init__(self, refused="", **env):
        self.env = {"PATH": os.environ["PATH"], **env}
        self.refused = refused
        self.ran = []

    @asynccontextmanager
    async def open(self, *, public=False):
        with tempfile.TemporaryDirectory(prefix="build-") as name:
            yield Room(self, Path(name), public=public)


class Room:
    def __init__(self, builder, root, *, public):
        self.builder, self.folder, self.public = builder, str(root), public

    async def put(self, files, name):
        for path, entry in files.items():
            file = Path(self.folder, name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(entry.data)

    async def run(self, command, *, name, timeout_s, env=None):
        self.builder.ran.append((list(command), self.public))
        folder = Path(self.folder, name)
        folder.mkdir(parents=True, exist_ok=True)
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            cwd=folder,
            env={**self.builder.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
            text=True,
        )
        return BuildRun(done.returncode, done.stdout, self.builder.refused)

    async def fetch(self, name, target):
        if not Path(self.folder, name).is_dir():
            raise BuildError(f"no folder {name}")
        shutil.copytree(Path(self.folder, name), target, symlinks=True)
