"""What our sandboxes cost beside the same steps by hand; prints medians in ms and their ratio.

``python tests/perf/bench_sandboxes.py [ROUNDS]``. By hand means: the ``docker`` client (or one ``bwrap``
command line) with the same image and folders, no wrapper, no bounds beyond the engine's defaults.
"""

import asyncio
import io
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.protocols import SandboxEngine, SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine

FILES = {f"src/part{n % 10}/file{n}.py": Entry(b"x = 1\n" * 100) for n in range(60)}
WORK = ["python3", "-c", "sum(range(2_000_000))"]


async def ours(engine: SandboxEngine) -> None:
    async with engine.open(SandboxSpec(image="python")) as sandbox:
        await sandbox.put(FILES, "/work")
        await sandbox.exec(WORK, timeout_s=60)
        await sandbox.get("/work", limit_bytes=10_000_000)


def tar_stream() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, entry in FILES.items():
            header = tarfile.TarInfo(name)
            header.size = len(entry.data)
            archive.addfile(header, io.BytesIO(entry.data))
    return stream.getvalue()


def read(stream: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
        archive.getmembers()


def docker_by_hand(engine: DockerEngine) -> None:
    client = engine.client
    made = client.containers.create(
        recipes.load("python").tag, ["sleep", "600"], network_mode="none", init=True
    )
    made.start()
    made.put_archive("/work", tar_stream())
    made.exec_run(WORK)
    stream, _ = made.get_archive("/work")
    read(b"".join(stream))
    made.remove(force=True)


def bwrap_by_hand() -> None:
    folder = Path(tempfile.mkdtemp())
    command = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
    ]
    command += [
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    command += ["--bind", str(folder), "/work", "--chdir", "/work"]
    subprocess.run([*command, "tar", "-x"], input=tar_stream(), check=True)
    subprocess.run([*command, *WORK], check=True)
    out = subprocess.run([*command, "tar", "-c", "."], check=True, capture_output=True).stdout
    read(out)
    shutil.rmtree(folder)


def compare(name: str, mine: Callable[[], None], by_hand: Callable[[], None], rounds: int) -> None:
    """Takes turns, so that a noisy moment meets both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        for way, kept in zip((mine, by_hand), times, strict=True):
            started = time.perf_counter()
            way()
            kept.append((time.perf_counter() - started) * 1000)
    a, b = (statistics.median(kept[1:]) for kept in times)
    print(f"{name:12} ours {a:7.1f} ms   by hand {b:7.1f} ms   ratio {a / b:.2f}")


def main(rounds: int) -> None:
    with asyncio.Runner() as runner:
        for name in ("docker", "bubblewrap"):
            try:
                engine = choose(name)
            except UserError as error:
                print(f"{name:12} not measured: {error}")
                continue
            hand = (
                (lambda found=engine: docker_by_hand(found))
                if isinstance(engine, DockerEngine)
                else bwrap_by_hand
            )
            compare(name, lambda found=engine: runner.run(ours(found)), hand, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
