"""Completes an agent's environment in its sandbox, and becomes the agent; standard library only, Python >= 3.9.

dgm puts this file and ``agent_packages.py`` into the sandbox; the launcher starts it in the agent's place. Programs
name the address, the key and the model by many variables: all usual ones get the values that the launcher set. Those
that switch a package's own reports off are set too, because a sandbox has no network. ``archive/seeds/README.md`` lists
them.
"""

from __future__ import annotations

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
CACHES = {
    "MYPY_CACHE_DIR": "mypy",
    "NPM_CONFIG_CACHE": "npm",
    "RUFF_CACHE_DIR": "ruff",
    "XDG_CACHE_HOME": "",
}
"""Caches of programs, as folders below ``.cache`` of the home folder: outside of every work tree."""


def complete(given: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the launcher's variables with all that an agent gets beside them.

    Args:
        given: by the launcher.
        kind: of the job; only in a ``solve`` job the packages are hidden, because the programs that an agent starts in
            its own source need them.
    """
    home = given.get("HOME", "/tmp")
    caches = {name: f"{home}/.cache/{folder}".rstrip("/") for name, folder in CACHES.items()}
    packages = package_names(given, hidden=kind == "solve")
    return {**OFFLINE, **caches, **model_names(given), **given, **task_names(given), **packages}


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


def task_names(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which the programs that the agent starts find the packages of a task, if it has some."""
    paths = given.get(TASK_PATHS)
    if not paths:
        return {}
    programs = [f"{path}/bin" for path in paths.split(os.pathsep)]
    return {AGENT_PID: str(os.getpid()), "PATH": os.pathsep.join([given.get("PATH", os.defpath), *programs])}


def package_names(given: Mapping[str, str], *, hidden: bool) -> dict[str, str]:
    """Return the variables that name the agent's packages, if it has some; ``hidden``: from the programs it starts."""
    packages = given.get("PYTHONPATH")
    path = [FOLDER] if hidden and (packages or TASK_PATHS in given) else []
    found = os.pathsep.join([*path, *([packages] if packages else [])])
    return {**({PACKAGES: packages} if packages else {}), **({"PYTHONPATH": found} if found else {})}


def main() -> int:
    """Become the agent; return the exit status of a shell where that fails.

    The arguments are the kind of the job and the agent's command.
    """
    kind, *command = sys.argv[1:]
    try:
        os.execvpe(command[0], command, complete(os.environ, kind))
    except OSError as error:
        print(f"the agent's command could not be started: {command[0]}: {error.strerror}")  # noqa: T201
    return 127


if __name__ == "__main__":
    sys.exit(main())
