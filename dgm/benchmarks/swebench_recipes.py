"""The build of an instance's image from the swebench package's own recipes (4.x only), in a separate process.

A build always needs a network: the recipes start from ``ubuntu:22.04``, install Debian packages and Miniconda, clone
the repository from GitHub and install its dependencies. Without a network it fails, and says where.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dgm.benchmarks.swebench_images import Store, built, row
from dgm.benchmarks.swebench_instances import Instance
from dgm.errors import Infrastructure, UserError

BASE = "ubuntu:22.04"
"""The base of all of the package's images."""
BUILT_WITHIN_S = 7200.0
KEPT = (
    "PATH",
    "DOCKER_HOST",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
_VERSION = "import importlib.metadata as m; print(m.version('swebench'))"
_SAID = 300


def obstacle(store: Store, python: str = sys.executable) -> str:
    """Return the reason why nothing can be built here, in a few words; empty if a build can be tried."""
    done = subprocess.run([python, "-P", "-c", _VERSION], capture_output=True, text=True, check=False)
    version = done.stdout.strip()
    if done.returncode or not version:
        return "the swebench package is not installed (pip install 'swebench<5')"
    if not version.startswith("4."):
        return f"swebench {version} has no recipes any more (pip install 'swebench<5')"
    if not (store.has(BASE) or store.offered(BASE)):
        return f"the recipes start from {BASE}, and no registry answers for it"
    return ""


def build(instance: Instance, store: Store, python: str = sys.executable) -> str:
    """Build the image; block for many minutes. The images below it are kept for the next build.

    Raises:
        UserError: the package has no recipe for it, or is not installed.
        Infrastructure: the build failed; the message holds the last output.
    """
    reason = obstacle(store, python)
    if reason:
        raise UserError(f"{instance.id}: its image cannot be built: {reason}")
    with tempfile.TemporaryDirectory(prefix="dgm-swebench-") as folder:
        Path(folder, "instance.json").write_text(json.dumps([row(instance)]), encoding="utf-8")
        said = _run(instance, folder, python)
        if not store.has(built(instance.id)):
            last = _last(Path(folder)) or said
            raise Infrastructure(
                f"{instance.id}: its image could not be built from the package's recipe: {last}"
            )
    return built(instance.id)


def _run(instance: Instance, folder: str, python: str) -> str:
    words = [python, "-P", "-m", "swebench.harness.prepare_images", "--dataset_name", "instance.json"]
    words += [
        "--instance_ids",
        instance.id,
        "--max_workers",
        "1",
        "--tag",
        "latest",
        "--env_image_tag",
        "latest",
    ]
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {"HOME": folder}
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILT_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(
            f"{instance.id}: its image was not built within {BUILT_WITHIN_S:.0f} s"
        ) from error
    lines = done.stdout.decode("utf-8", "replace").strip().split("\n")
    return lines[-1][:_SAID]


def _last(folder: Path) -> str:
    """Return the last error in the package's own logs of the build."""
    logs = sorted(folder.glob("logs/build_images/**/*.log"), key=lambda file: file.stat().st_mtime)
    lines = [
        line
        for file in logs
        for line in file.read_text("utf-8", "replace").split("\n")
        if "error" in line.lower()
    ]
    return lines[-1].strip()[:_SAID] if lines else ""
