"""Images of tasks that bring a Dockerfile, and of tasks whose workspace is in their image.

A Dockerfile may start from a recipe (``FROM dgm/python``), from an image that the engine has, or from one in a
registry. Its steps run programs of the suite's author: bounded, and without a network unless the user allows one.
"""

import io
import logging
import re
import shlex
import time
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from dgm.archive.snapshots import to_tar
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.sandboxes import images, prepared, recipes
from dgm.sandboxes.engine_client import convert_engine_errors, find_image
from dgm.sandboxes.image_needs import check_needs

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

LABEL = "dgm.task"
RECIPE = "dgm/"
"""Prefix of a recipe's name in a ``FROM``."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_CONTINUED = re.compile(r"[\\`][ \t]*\n")
_FETCHES = re.compile(r"^\s*(?:ONBUILD\s+)?ADD\s[^\n]*[:@$\\\\][^\n]*", re.IGNORECASE | re.MULTILINE)
_ALLOW = "builds have no network unless you allow it: dgm trust SUITE --network"
TASKS = "a task's Dockerfile"
_SAID = 300
BUILD_S = 1800
BUILD_CORES = 2
BUILD_BYTES = 4_000_000_000
HELD = "-held"
"""Ending of the name of the image between the given one and the one with a workspace."""
_HELD = """\
FROM {image}
USER 0
RUN cp -a {folder}/. /tmp/held && rm -rf /testbed /tmp/held/.git && mv /tmp/held /testbed && cd /testbed \\
    && git init -q && git add -A -f && git -c user.name=dgm -c user.email=dgm commit -q --allow-empty -m start
"""


class TaskImageStore:
    """The images of tasks in one engine."""

    def __init__(self, client: "DockerClient") -> None:
        self._client = client

    def build(self, context: Snapshot, tag: str, *, network: bool, what: str = TASKS) -> None:
        """Build the context's ``Dockerfile`` as ``tag``, unless there is such an image.

        Args:
            context: all that it may copy.
            tag: of the image.
            network: whether its steps may use a network: the engine's bridge, never the host's own.
            what: the Dockerfile, for messages.

        Raises:
            UserError: it cannot be built here; the message quotes the builder.
            Infrastructure: the engine failed.
        """
        with convert_engine_errors("build a task's image"):
            if find_image(self._client, tag) is not None:
                return
            text = context["Dockerfile"].data.decode("utf-8", "replace")
            if not network:
                refuse_addresses(text)
            bases = {base: _find_base(self._client, base, what) for base in _bases(text, what)}
            log.info("building the image %s", tag)
            resolved = _replace_bases(text, bases)
            files = {**context, "Dockerfile": Entry(resolved.encode())}
            _build_image(self._client, files, tag, "default" if network else "none", what)

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``, the image with its ``folder`` as a workspace with a baseline, unless there is such an image.

        Raises:
            UserError: there is no such image or folder, or the image lacks something that sandboxes need.
            Infrastructure: the engine failed.
        """
        with convert_engine_errors("prepare a task's image"):
            if find_image(self._client, image) is None:
                # The derived image does not need its source image.
                if find_image(self._client, tag) is not None:
                    return
                raise UserError(f"the engine has no image {image}: pull or build it first")
            if find_image(self._client, tag) is None:
                check_needs(self._client, image)
            held = f"{tag}{HELD}"
            text = _HELD.format(image=image, folder=shlex.quote(folder))
            # The builder's cache provides it, unless the name refers to another image by now.
            _build_image(self._client, {"Dockerfile": Entry(text.encode())}, held, "none")
            prepared.prepare(self._client, held, tag=tag, repository=True)

    def check(self, image: str) -> None:
        """Check that an image has the programs by which dgm works and grades in it.

        Raises:
            UserError: there is no such image, or it lacks one; the message names all that it lacks.
            Infrastructure: the engine failed, or the image's programs did not end.
        """
        with convert_engine_errors("look at a task's image"):
            check_needs(self._client, image)


def refuse_addresses(text: str) -> None:
    """Refuse a Dockerfile that adds an address, which the engine itself would fetch whatever network the steps have.

    Raises:
        UserError: it does, or could by a variable or an escape.
    """
    line = _FETCHES.search(_CONTINUED.sub(" ", text))
    if line:
        raise UserError(f"a task's Dockerfile fetches an address ({line[0].strip()[:100]}); {_ALLOW}")


def _bases(text: str, what: str = TASKS) -> list[str]:
    """Return the base images of a Dockerfile, without its own earlier stages."""
    found: list[str] = []
    stages: set[str] = {"scratch"}
    matches = [match for match in map(_FROM.match, text.splitlines()) if match]
    if not matches:
        raise UserError(f"{what} has no FROM line that names an image")
    for match in matches:
        if match[1] not in stages:
            found.append(match[1])
        stages.add(match[2] or "")
    return found


def _find_base(client: "DockerClient", base: str, what: str = TASKS) -> str:
    """Return the engine's name of a base; build a recipe's image for it."""
    recipe = base.removeprefix(RECIPE)
    if base != recipe and recipe in recipes.names():
        return images.ensure(client, recipes.load(recipe))
    if find_image(client, base) is not None:
        return base
    if images.is_offered(client, base):
        return base
    raise UserError(
        f"{what} stands on {base}: the engine has no such image and no registry offers it; "
        "pull it, or write 'FROM dgm/python'"
        + (", or import the suite with --image python" if what == TASKS else "")
    )


def _replace_bases(text: str, names: Mapping[str, str]) -> str:
    lines = []
    for line in text.splitlines():
        match = _FROM.match(line)
        base = match[1] if match else ""
        lines.append(line.replace(base, names[base], 1) if base in names else line)
    return "\n".join(lines) + "\n"


def _build_image(client: "DockerClient", files: Snapshot, tag: str, network: str, what: str = TASKS) -> None:
    steps: Generator[dict[str, Any], None, None] = client.api.build(
        fileobj=io.BytesIO(to_tar(files)),
        custom_context=True,
        tag=tag,
        labels={LABEL: "1"},
        network_mode=network,
        container_limits=_find_limits(client),
        # The user's proxies may hold passwords, which the steps could read.
        use_config_proxy=False,
        timeout=BUILD_S,
        rm=True,
        forcerm=True,
        decode=True,
    )
    said = ""
    ends = time.monotonic() + BUILD_S
    for step in steps:
        if time.monotonic() > ends:
            steps.close()
            raise UserError(f"{what} is not built within {BUILD_S // 60} minutes")
        if "error" in step:
            last = said.strip().rpartition("\n")[2][-_SAID:]
            problem = str(step["error"]).strip().replace("\n", " ")[:_SAID]
            hint = f"; {_ALLOW}" if network == "none" else ""
            raise UserError(f"{what} cannot be built: {problem}: {last}{hint}")
        said = (said + str(step.get("stream", "")))[-2000:]
        log.debug("%s", str(step.get("stream", step.get("status", ""))).rstrip())


def _find_limits(client: "DockerClient") -> Any:  # noqa: ANN401  (a type of the vendor's stubs)
    """Return the bounds on each step of a build."""
    cores = min(BUILD_CORES, int(client.info()["NCPU"]))
    return {"memory": BUILD_BYTES, "memswap": BUILD_BYTES, "cpusetcpus": f"0-{cores - 1}"}
