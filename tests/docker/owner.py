"""A process that owns a sandbox and is killed by a test: ``python owner.py ENGINE LABEL LIFETIME_S``."""

import asyncio
import sys

from dgm.protocols import SandboxSpec
from dgm.sandboxes.choose import choose


async def main(name, label, lifetime_s):
    wanted = SandboxSpec(
        image="python", labels={"dgm.run": label}, lifetime_s=float(lifetime_s), memory_mb=128
    )
    async with choose(name).open(wanted) as sandbox:
        print("open", flush=True)
        await sandbox.exec(["sh", "-c", f"sleep 600.0001; echo {label}"], timeout_s=600)


asyncio.run(main(*sys.argv[1:]))
