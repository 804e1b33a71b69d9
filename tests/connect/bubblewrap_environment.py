"""An environment of Harbor that needs no Docker: bubblewrap over a folder, with this machine's programs.

``harbor run --env tests.connect.bubblewrap_environment:BubblewrapEnvironment``. What the task's ``environment`` holds
beside its Dockerfile is in ``/app``. The network is this machine's, because the model of a test is at a port here: it
claims to bound it, and does not.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

NETWORK = [
    name for name in EnvironmentCapabilities.model_fields if "network" in name or name == "disable_internet"
]
FOLDERS = ("app", "installed-agent", "logs", "tests", "solution", "tmp", "root")


class BubblewrapEnvironment(BaseEnvironment):
    @staticmethod
    def type():
        return "bubblewrap"

    @property
    def capabilities(self):
        return EnvironmentCapabilities(**dict.fromkeys(NETWORK, True))

    async def set_network_policy(self, network_policy):
        pass

    def _validate_definition(self):
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    async def start(self, force_build):
        self.root = Path(tempfile.mkdtemp(prefix="harbor-"))
        for name in (*FOLDERS, "logs/agent", "logs/verifier", "logs/artifacts"):
            (self.root / name).mkdir()
        ignored = shutil.ignore_patterns("Dockerfile")
        shutil.copytree(self.environment_dir, self.root / "app", dirs_exist_ok=True, ignore=ignored)

    async def stop(self, delete):
        shutil.rmtree(self.root)

    def _inside(self, path):
        return self.root / str(path).lstrip("/")

    async def upload_file(self, source_path, target_path):
        self._inside(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._inside(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self._inside(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        system = [word for name in ("usr", "etc") for word in ("--ro-bind", f"/{name}", f"/{name}")]
        links = [
            w for name in ("bin", "lib", "lib64", "sbin") for w in ("--symlink", f"usr/{name}", f"/{name}")
        ]
        binds = [word for name in FOLDERS for word in ("--bind", str(self.root / name), f"/{name}")]
        given = {"PATH": "/usr/bin:/bin", "HOME": "/root", **(self._merge_env(env) or {})}
        variables = [word for name, value in given.items() for word in ("--setenv", name, value)]
        words = [
            "bwrap",
            *system,
            *links,
            *binds,
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--clearenv",
            *variables,
        ]
        process = await asyncio.create_subprocess_exec(
            *[*words, "--unshare-pid", "--die-with-parent", "--chdir", cwd or "/app", "bash", "-c", command],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(stdout=output.decode(), stderr=errors.decode(), return_code=process.returncode)
