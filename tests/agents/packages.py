"""The packages of each agent, at the versions of its ``requirements.txt``, kept in a cache of these tests' own."""

import asyncio
import hashlib
import os
import platform
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from unittest.mock import patch

import platformdirs

AGENTS = Path(__file__).parent
CACHE = Path(platformdirs.user_cache_dir("dgm-tests"), "agents")
"""It is the user's own, whatever a test's environment says later."""


def environment(agent: str) -> Mapping[str, str]:
    """What makes dgm install an agent's ``requires`` at those versions, once, into a folder that is named for them."""
    pins = AGENTS / agent / "requirements.txt"
    name = f"{agent}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    return {
        "XDG_CACHE_HOME": str(CACHE / name),
        "PIP_CONSTRAINT": pins.as_uri(),
    }


def folder(agent: str) -> Path:
    """Where an agent's packages are for the Python that runs this; installed if they are not there."""
    from dgm.protocols import SandboxSpec
    from dgm.sandboxes.choose import choose
    from dgm.sandboxes.packages import SandboxPython, ensure_packages

    requires = tomllib.loads((AGENTS / agent / "agent.toml").read_text())["agent"]["requires"]
    with patch.dict(os.environ, environment(agent)):
        version = "{}.{}".format(*sys.version_info[:2])
        own = SandboxPython(version, platform.machine(), *platform.libc_ver())
        return asyncio.run(ensure_packages(tuple(requires), own, choose(), SandboxSpec("python")))


def main(agents: list[str]) -> int:
    """Pins what was installed: ``python -m tests.agents.packages AGENT…``, with an empty file to pin it anew."""
    for agent in agents:
        found = {
            each.metadata["Name"].lower(): each.version for each in distributions(path=[str(folder(agent))])
        }
        lines = "".join(f"{name}=={version}\n" for name, version in sorted(found.items()))
        (AGENTS / agent / "requirements.txt").write_text(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
