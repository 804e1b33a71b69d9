"""An agent's own image: built once from its Dockerfile.

The Dockerfile may copy what no child can change. So all agents of a lineage share one image, and what evolution edits
is never baked into it. Its steps may use the engine's bridge, as an author's own installation would use the network.
"""

import hashlib
import json

from dgm.dockerignore import docker_context
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.protocols import SandboxEngine
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.image_store import AGENT
from dgm.sandboxes.preparing import Preparation

_WHAT = "agent.toml: image: the Dockerfile (which can copy protected files only)"


def build_agent_image(engine: SandboxEngine, dockerfile: str, context: Snapshot) -> str:
    """Return the name of an agent's image for a sandbox's specification; build it if it is missing.

    Args:
        engine: of the sandboxes.
        dockerfile: a path of ``context``.
        context: the files that the Dockerfile may copy, unless ``.dockerignore`` names them.

    Raises:
        UserError: it cannot be built here; the message says why.
        Infrastructure: the engine failed.
    """
    builder = find_builder(engine)
    files = dict(docker_context(context, dockerfile))
    del files[dockerfile]
    files["Dockerfile"] = context[dockerfile]
    tag = f"{AGENT}:{_digest(files)}"
    told = Preparation("the agent's image")
    if not builder.task_images.has(tag):
        told.say("building it, which takes minutes where it has many packages")
        builder.task_images.build(files, tag, network=True, what=_WHAT)
        told.say(f"built in {told.seconds:.0f} s")
    return f"{IN_ENGINE}{tag}"


def find_builder(engine: SandboxEngine) -> DockerEngine:
    """Return the engine that builds and holds agents' images.

    Raises:
        UserError: the engine has no such images.
    """
    if isinstance(engine, DockerEngine):
        return engine
    raise UserError(
        f"agent.toml: image: {engine.name} has no images but those of recipes: use --sandbox docker with one engine, "
        "or name a recipe (with bubblewrap, agents use this machine's own programs)"
    )


def _digest(files: Snapshot) -> str:
    what = [
        [path, hashlib.sha256(entry.data).hexdigest(), _mode(entry)] for path, entry in sorted(files.items())
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]


def _mode(entry: Entry) -> str:
    return str(entry.mode)
