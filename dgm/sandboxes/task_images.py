"""Images of tasks that bring a Dockerfile, and of tasks whose workspace is in their image.

A Dockerfile may start from a recipe (``FROM dgm/python``), from an image that the engine has, or from one in a
registry. Only in the last case its steps have a network: they would fail without a registry anyway.
"""

import io
import logging
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dgm.archive.snapshots import to_tar
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.sandboxes import derived, images, recipes
from dgm.sandboxes.engine_client import find_image

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

LABEL = "dgm.task"
RECIPE = "dgm/"
"""Prefix of a recipe's name in a ``FROM``."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_SAID = 300
_HELD = """\
FROM {image}
USER 0
RUN cp -a {folder}/. /tmp/held && rm -rf /testbed /tmp/held/.git && mv /tmp/held /testbed && cd /testbed \\
    && git init -q && git add -A -f && git -c user.name=dgm -c user.email=dgm commit -q --allow-empty -m start
"""


def build_task_image(client: "DockerClient", context: Snapshot, tag: str) -> None:
    """Build the context's ``Dockerfile`` as ``tag``, unless there is such an image.

    Raises:
        UserError: it cannot be built here; the message quotes the builder.
        Infrastructure: the engine failed.
    """
    if find_image(client, tag) is not None:
        return
    text = context["Dockerfile"].data.decode("utf-8", "replace")
    bases = {base: _find_base(client, base) for base in _bases(text)}
    offered = any(not here for _, here in bases.values())
    log.info("building the image %s", tag)
    resolved = _replace_bases(text, {base: name for base, (name, _) in bases.items()})
    files = {**context, "Dockerfile": Entry(resolved.encode())}
    _build_image(client, files, tag, network="host" if offered else "none")


def hold_workspace(client: "DockerClient", image: str, folder: str, tag: str) -> None:
    """Make ``tag``, the image with its ``folder`` as a workspace with a baseline, unless there is such an image.

    Raises:
        UserError: there is no such image or folder, or the image lacks something that sandboxes need.
        Infrastructure: the engine failed.
    """
    if find_image(client, image) is None:
        # The derived image does not need its source image.
        if find_image(client, tag) is not None:
            return
        raise UserError(f"the engine has no image {image}: pull or build it first")
    held = f"{tag}-held"
    text = _HELD.format(image=image, folder=shlex.quote(folder))
    # The builder's cache provides it, unless the name refers to another image by now.
    _build_image(client, {"Dockerfile": Entry(text.encode())}, held, network="none")
    derived.derive_image(client, held, tag)


def _bases(text: str) -> list[str]:
    """Return the base images of a Dockerfile, without its own earlier stages."""
    found: list[str] = []
    stages: set[str] = {"scratch"}
    for line in text.splitlines():
        match = _FROM.match(line)
        if match:
            if match[1] not in stages:
                found.append(match[1])
            stages.add(match[2] or "")
    if not found:
        raise UserError("a task's Dockerfile has no FROM line that names an image")
    return found


def _find_base(client: "DockerClient", base: str) -> tuple[str, bool]:
    """Return the engine's name of a base, and whether the engine has it; build a recipe's image for it."""
    recipe = base.removeprefix(RECIPE)
    if base != recipe and recipe in recipes.names():
        return images.ensure(client, recipes.load(recipe)), True
    if find_image(client, base) is not None:
        return base, True
    if images.is_offered(base):
        return base, False
    raise UserError(
        f"a task's Dockerfile stands on {base}: the engine has no such image and no registry offers it; "
        "pull it, write 'FROM dgm/python', or import the suite with --image python"
    )


def _replace_bases(text: str, names: Mapping[str, str]) -> str:
    lines = []
    for line in text.splitlines():
        match = _FROM.match(line)
        base = match[1] if match else ""
        lines.append(line.replace(base, names[base], 1) if base in names else line)
    return "\n".join(lines) + "\n"


def _build_image(client: "DockerClient", files: Snapshot, tag: str, network: str) -> None:
    steps: Iterator[dict[str, Any]] = client.api.build(
        fileobj=io.BytesIO(to_tar(files)),
        custom_context=True,
        tag=tag,
        labels={LABEL: "1"},
        network_mode=network,
        rm=True,
        forcerm=True,
        decode=True,
    )
    said = ""
    for step in steps:
        if "error" in step:
            last = said.strip().rpartition("\n")[2][-_SAID:]
            problem = str(step["error"]).strip().replace("\n", " ")[:_SAID]
            hint = "" if network == "host" else " (no network, for no registry answers)"
            raise UserError(f"a task's Dockerfile cannot be built{hint}: {problem}: {last}")
        said = (said + str(step.get("stream", "")))[-2000:]
        log.debug("%s", str(step.get("stream", step.get("status", ""))).rstrip())
