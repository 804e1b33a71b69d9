"""How a sandbox's container is made: every flag that confines it, in one place."""

from typing import Any

from dgm.protocols import SandboxSpec
from dgm.sandboxes.recipes import Recipe
from dgm.sandboxes.seccomp import profile

SHARES = {"/work": 8, "/tmp": 4, "/agent": 2, "/job": 2}
"""Shares of ``disk_mb``: the engine has no bound over several folders, so each has its own."""
LABEL = "dgm.sandbox"
_OWN_PIDS = 4
"""The container's init and sleeper, and the engine's own steps into it."""
_MIB = 1024 * 1024
_BYTES_PER_FILE = 4096
_OPEN_FILES = 1024


def keeper(recipe: Recipe) -> int:
    """The uid of the container's sleeper: not the sandbox's user, who could end the sandbox by killing it."""
    return recipe.user + 1


def creation(spec: SandboxSpec, recipe: Recipe) -> dict[str, Any]:
    """Arguments of ``containers.create``.

    The main process sleeps for the lifetime and the engine removes the container at its end: a sandbox whose
    owner died goes away by itself.
    """
    from docker.types import LogConfig, Ulimit

    memory = f"{spec.memory_mb}m"
    return {
        "image": recipe.tag,
        "command": ["sleep", str(max(1, int(spec.lifetime_s)))],
        "entrypoint": [],
        "user": f"{keeper(recipe)}:{keeper(recipe)}",
        "working_dir": "/",
        "hostname": "sandbox",
        "labels": {**spec.labels, LABEL: recipe.name},
        "auto_remove": True,
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={profile().read_text(encoding='utf-8')}"],
        "read_only": True,
        "tmpfs": _tmpfs(spec.disk_mb, recipe.user),
        "volumes": {str(mount.source): {"bind": mount.target, "mode": "ro"} for mount in spec.mounts},
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": spec.pids + _OWN_PIDS,
        "nano_cpus": int(spec.cpus * 1e9),
        "ipc_mode": "none",
        "init": True,
        "ulimits": [
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "log_config": LogConfig(type="none"),
    }


def _tmpfs(disk_mb: int, uid: int) -> dict[str, str]:
    options = {}
    for target, share in SHARES.items():
        size = disk_mb * _MIB * share // sum(SHARES.values())
        bound = f"size={size},nr_inodes={max(64, size // _BYTES_PER_FILE)}"
        options[target] = f"rw,exec,nosuid,nodev,{bound},mode=0755,uid={uid},gid={uid}"
    return options
