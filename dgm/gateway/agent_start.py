"""Completes an agent's environment in its sandbox, and becomes the agent; standard library only, Python >= 3.9.

dgm puts this file and ``agent_packages.py`` into the sandbox; the launcher starts it in the agent's place. Programs
name the address, the key and the model by many variables: all usual ones get the values that the launcher set. Those
that switch a package's own reports off are set too, because a sandbox has no network. ``archive/seeds/README.md`` lists
them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

FOLDER = "/job/python"
"""Where the sandbox has ``agent_packages.py`` as ``sitecustomize.py``."""
PACKAGES = "DGM_PACKAGES"
"""Variable with the folder of the agent's packages, for a Python that the agent starts of its own."""
TASK_PATHS = "DGM_TASK_PATHS"
"""Variable with the folders of a task's packages and modules, for the programs that the agent starts."""
AGENT_PID = "DGM_AGENT_PID"
"""Variable with the process id of the agent's program, whose own Python does not look in those folders."""
COMMANDS = ".dgm/bin"
"""Folder of a runtime's commands, below the runtime's own folder."""
RUNTIME = "DGM_RUNTIME"
"""Variable with the folder of the files of the agent's own image, where it works beside another image."""
AZURE_VERSION = "2024-10-21"
"""Clients of Azure demand a version of its interface; the gateway reads none."""
OFFLINE = {
    "AIDER_ANALYTICS": "false",
    "AIDER_CHECK_UPDATE": "false",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
"""Nothing is reported, and nothing is looked up on a network."""
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "agent"), ("EMAIL", "agent@localhost"))
}
"""Without a name, git refuses to commit."""
CACHES = {
    "MYPY_CACHE_DIR": "mypy",
    "NPM_CONFIG_CACHE": "npm",
    "RUFF_CACHE_DIR": "ruff",
    "XDG_CACHE_HOME": "",
}
"""Caches of programs, as folders below ``.cache`` of the home folder: outside of every work tree."""


def complete(
    given: Mapping[str, str], kind: str, own: Mapping[str, str] | None = None, runtime: str = ""
) -> dict[str, str]:
    """Return the launcher's variables with all that an agent gets beside them.

    Args:
        given: by the launcher.
        kind: of the job; only in a ``solve`` job the packages are hidden, because the programs that an agent starts in
            its own source need them.
        own: variables of the agent's contract.
        runtime: folder of the files of the agent's own image; its commands are found after all others.
    """
    home = given.get("HOME", "/tmp")
    caches = {name: f"{home}/.cache/{folder}".rstrip("/") for name, folder in CACHES.items()}
    packages = package_names(given, hidden=kind == "solve")
    model = model_names(given) if "OPENAI_BASE_URL" in given else {}
    return {
        **OFFLINE,
        **IDENTITY,
        **caches,
        **(own or {}),
        **model,
        **given,
        **({AGENT_PID: str(os.getpid())} if given.get(TASK_PATHS) else {}),
        **packages,
        **({RUNTIME: runtime} if has_commands(runtime) else {}),
        **search_path(given, runtime),
    }


def model_names(given: Mapping[str, str]) -> dict[str, str]:
    """Return the further names of the model, its address and its key."""
    address, root = given["OPENAI_BASE_URL"], given["ANTHROPIC_BASE_URL"]
    token, model = given["OPENAI_API_KEY"], given["DGM_MODEL"]
    return {
        "OPENAI_API_BASE": address,
        "OPENAI_MODEL": model,
        "OPENAI_DEFAULT_MODEL": model,
        # Else the module client of the package openai, which finds keys of two providers, refuses to choose.
        "OPENAI_API_TYPE": "openai",
        "ANTHROPIC_AUTH_TOKEN": token,
        "ANTHROPIC_API_BASE": root,
        "ANTHROPIC_MODEL": model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": model,
        # Not ..._FABLE_MODEL: by it Claude Code tells any model that it is Fable.
        "ANTHROPIC_DEFAULT_OPUS_MODEL": model,
        "LITELLM_PROXY_API_BASE": address,
        "LITELLM_PROXY_API_KEY": token,
        "AZURE_API_BASE": root,
        "AZURE_API_KEY": token,
        "AZURE_API_VERSION": AZURE_VERSION,
        "AZURE_OPENAI_ENDPOINT": root,
        "AZURE_OPENAI_API_KEY": token,
        "OPENAI_API_VERSION": AZURE_VERSION,
    }


def search_path(given: Mapping[str, str], runtime: str) -> dict[str, str]:
    """Return ``PATH`` if an agent finds more commands than its launcher: of the task, its packages, its own image."""
    homes = [given.get(name, "") for name in (TASK_PATHS, "PYTHONPATH")]
    found = [f"{folder}/bin" for paths in homes if paths for folder in paths.split(os.pathsep)]
    found += [f"{runtime}/{COMMANDS}"] if has_commands(runtime) else []
    return {"PATH": os.pathsep.join([given.get("PATH", os.defpath), *found])} if found else {}


def has_commands(runtime: str) -> bool:
    """Return whether the files of the agent's own image are shown."""
    return bool(runtime) and os.path.isdir(f"{runtime}/{COMMANDS}")  # noqa: PTH112  (see the packages)


def package_names(given: Mapping[str, str], *, hidden: bool) -> dict[str, str]:
    """Return the variables that name the agent's packages, if it has some; ``hidden``: from the programs it starts."""
    packages = given.get("PYTHONPATH")
    path = [FOLDER] if hidden and (packages or TASK_PATHS in given) else []
    found = os.pathsep.join([*path, *([packages] if packages else [])])
    return {**({PACKAGES: packages} if packages else {}), **({"PYTHONPATH": found} if found else {})}


def find_program(name: str, runtime: str) -> str:
    """Return the program that an agent's command names: that of its own image, if that has one."""
    own = f"{runtime}/{COMMANDS}/{name}"
    return own if runtime and "/" not in name and os.path.exists(own) else name  # noqa: PTH110


def main() -> int:
    """Become the agent; return the exit status of a shell where that fails.

    The arguments are a JSON object (``kind``, ``env``, ``runtime``, and ``beside``: whether the agent's program is that
    of the runtime) and the agent's command.
    """
    words, *command = sys.argv[1:]
    job = json.loads(words)
    runtime = job.get("runtime", "")
    env = complete(os.environ, job["kind"], job.get("env"), runtime)
    program = find_program(command[0], runtime if job.get("beside") else "")
    try:
        os.execvpe(program, [program, *command[1:]], env)
    except OSError as error:
        print(f"the agent's command could not be started: {command[0]}: {error.strerror}")  # noqa: T201
    return 127


if __name__ == "__main__":
    sys.exit(main())
