"""Hostile repositories and agents get no variable and no file of the machine when their packages are installed."""

import os
import subprocess
import sys

import pytest

from tests.support.each_engine import find_engine
from tests.support.hostile_repositories import AGENTS, FIX, LEAK, PYTHON, REPOSITORIES, THIEF, fill
from tests.support.index_server import IndexServer
from tests.support.program import OFFLINE
from tests.support.small_history import PYTEST, make_history

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
SECRET = "canary-of-this-machine"
FILES = (
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".aws/credentials", ".ssh/id_rsa", ".docker/config.json",
    ".kube/config", ".gnupg/secring", ".config/gh/hosts.yml", ".cargo/credentials.toml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".bash_history", ".env", ".config/uv/credentials.toml", ".config/pip/netrc",
    ".azure/token", ".config/gcloud/key.json", "evil.whl",
)  # fmt: skip


class Machine:
    """A user with secrets, a package index, and a server that must hear nothing."""

    def __init__(self, folder, index, listener):
        self.folder, self.index, self.listener = folder, index, listener
        self.home = folder / "home"
        for name in FILES:
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(f"//registry.example/:_authToken={SECRET}\n")
        keys = {f"PROVIDER_{number}_API_KEY": SECRET for number in range(20)}
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ},
            **keys,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "DGM_ARCHIVE": str(folder / "archive"),
            "PIP_INDEX_URL": index.url,
            "NPM_CONFIG_REGISTRY": f"http://127.0.0.1:{index.port}/npm/",
        }

    def fill(self, text):
        return fill(text, self.listener.port, self.home)

    def dgm(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "dgm", *map(str, words)],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done

    def check(self):
        """Nothing arrived, and nothing that was kept holds a secret."""
        assert self.listener.asked == []
        assert not any(SECRET in asked for asked in self.index.asked)
        kept = [
            path for path in self.folder.rglob("*") if path.is_file() and not path.is_relative_to(self.home)
        ]
        assert kept
        assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
        assert sorted(
            str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file()
        ) == sorted(FILES)


@pytest.fixture
def machine(tmp_path):
    find_engine("bubblewrap", "node", "npm")
    with IndexServer().serving() as index, IndexServer().serving() as listener:
        index.add_installed(*PYTEST)
        index.add_wheel("coverage")
        index.add_wheel("tiny")
        yield Machine(tmp_path, index, listener)


@pytest.mark.parametrize("name", REPOSITORIES)
def test_mining_a_hostile_repository_tells_it_nothing(machine, name):
    files = {path: machine.fill(text) for path, text in REPOSITORIES[name].items()}
    fix = FIX if "pyproject.toml" in files else {"README.md": "sums\n"}
    repo = make_history(machine.folder / "repo", [("begin", files), ("Halve by two", fix)])
    options = ("--bugs", "0", "--set", "mining.holdout=0", "--set", "sandbox=bubblewrap")
    done = machine.dgm("benchmark", "mine", repo, "--out", "suite", *options)
    assert done.returncode == (0 if fix is FIX else 2), done.stderr
    if fix is FIX:
        assert machine.dgm("benchmark", "verify", "suite", "--set", "sandbox=bubblewrap").returncode == 0
    subprocess.run(["git", "clone", "-q", repo, machine.folder / "checkout"], check=True)
    words = (
        "example:best",
        "checkout",
        "half(4) must be 2",
        *OFFLINE,
    )
    assert machine.dgm("solve", *words).returncode in (0, 1)
    machine.check()


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_command_of_the_users_own_meets_no_secret_either(machine, language):
    files = REPOSITORIES["settings of npm"] if language == "javascript" else PYTHON
    repo = make_history(
        machine.folder / "repo", [("begin", {each: machine.fill(text) for each, text in files.items()})]
    )
    setup = machine.fill(
        f'({THIEF}; cat {{home}}/.npmrc /root/.* ; ls /home) >"$DGM_PACKAGES/seen" 2>&1; true'
    )
    options = ("--setup", setup, "--out", "suite", "--set", f"mining.language={language}")
    options += ("--set", "sandbox=bubblewrap")
    done = machine.dgm("benchmark", "mine", repo, *options)
    assert done.returncode == 2
    machine.check()
    (seen,) = (machine.folder / "suite.mining").glob("environments/*/packages/seen")
    assert "HTTPS_PROXY" in seen.read_text()


@pytest.mark.parametrize("name", AGENTS)
def test_a_hostile_agent_gets_nothing_by_its_packages(machine, name):
    machine.dgm("agent", "init", "stranger")
    agent = machine.folder / "stranger"
    line, files = AGENTS[name]
    manifest = (agent / "agent.toml").read_text()
    line = machine.fill(line.replace("{leak}", LEAK))
    (agent / "agent.toml").write_text(manifest.replace("[agent]\n", f"[agent]\n{line}\n", 1))
    for path, text in files.items():
        (agent / path).parent.mkdir(parents=True, exist_ok=True)
        (agent / path).write_text(machine.fill(text))
    done = machine.dgm("agent", "check", "{agent}", "--set", "sandbox=bubblewrap")
    assert done.returncode in (1, 2), done.stdout + done.stderr
    machine.check()
