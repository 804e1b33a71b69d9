"""The images of one engine: of recipes, tasks and their repositories, and agents; how they are made and when they go.

Names tell what an image is: ``dgm/RECIPE:DIGEST``, and those in ``KINDS``. Images that nobody used for a week are
removed; those of tasks also beyond a bound of bytes, the longest unused first. Images that were neither made nor pulled
here stay.

A Dockerfile may start from a recipe (``FROM dgm/python``), from an image that the engine has, or from one in a
registry. Those of tasks run programs of the suite's author: bounded, and without a network unless the user allows one.
"""

import hashlib
import io
import json
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.archive.snapshots import to_tar
from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.folders import docker_context, read_folder
from dgm.sandboxes import prepared, recipes
from dgm.sandboxes.container import IN_ENGINE, strip_registry
from dgm.sandboxes.engine_client import (
    SLOW_S,
    UNUSED_S,
    api_with_timeout,
    convert_engine_errors,
    find_image,
    find_last_use,
    lock_image,
    note_of,
    note_use,
    slow_api,
)
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.recipes import Recipe

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

AGENT, TASK, WORKSPACE, INSTANCE = "dgm/agent", "dgm/task", "dgm/task-workspace", "dgm/instance"
KINDS = (AGENT, TASK, WORKSPACE, INSTANCE, prepared.REPOSITORY)
"""Names, without tags, of images that are made here and go by age."""
BOUNDED = (TASK, WORKSPACE, INSTANCE, prepared.REPOSITORY)
"""Those that also go beyond a bound of bytes."""
ASK_AGAIN_S = 60.0
"""Seconds until a registry that offered nothing is asked again."""
TASKS = "a task's Dockerfile"
AGENTS = "agent.toml: image: the Dockerfile (which can copy protected files only)"
Progress = Callable[[int, int], None]
"""Callback for a download: bytes received, and total bytes as far as known."""
_LABEL = "dgm.image"
"""Label of an image that dgm built: its name."""
_RECIPE = "dgm/"
"""Prefix of a recipe's name in a ``FROM``."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_CONTINUED = re.compile(r"[\\`][ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*")
_FETCHES = re.compile(r"^\s*(?:ONBUILD\s+)?ADD\s[^\n]*[:@$\\\\][^\n]*", re.IGNORECASE | re.MULTILINE)
_ALLOW = "builds have no network unless you allow it in Python: dgm.trust(SUITE, network=True)"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_REGISTRY_ANSWERS_WITHIN_S = 10
_BUILD_CORES, _BUILD_BYTES = 2, 4_000_000_000
_LINES, _LINE_CHARACTERS = 3, 300
_PULLED = "pulled "
"""Beginning of the name of the note that an image was pulled for what was made of it."""


@dataclass(frozen=True, slots=True)
class StoredImage:
    """One image that was made here."""

    tag: str
    size_bytes: int
    used: float
    """Time when it was made or last used from this machine, in seconds since 1970."""
    source: str = ""
    """The image that it was made of; empty if unknown."""


class ImageStore:
    """The images of one engine. All methods block."""

    def __init__(self, client: "DockerClient") -> None:
        self._client = client
        self._refused: dict[str, float] = {}

    def has(self, reference: str) -> bool:
        """Return whether the engine has an image of that name."""
        with convert_engine_errors(f"look for the image {reference}"):
            return find_image(self._client, reference) is not None

    def offered(self, reference: str) -> bool:
        """Return whether a registry answers for the image, asked through the engine with its mirrors and proxies.

        One that offered nothing is asked again after a minute.
        """
        import docker
        import requests

        if time.monotonic() - self._refused.get(reference, -ASK_AGAIN_S) < ASK_AGAIN_S:
            return False
        api = api_with_timeout(self._client, _REGISTRY_ANSWERS_WITHIN_S)
        try:
            api.inspect_distribution(reference)  # type: ignore[no-untyped-call]
        except (docker.errors.DockerException, requests.RequestException):
            self._refused[reference] = time.monotonic()
            return False
        return True

    def pull(self, reference: str, progress: Progress | None = None) -> None:
        """Pull an image; layers that arrived before an interruption are not pulled again."""
        counts: dict[str, tuple[int, int]] = {}
        with convert_engine_errors(f"pull the image {reference}"):
            name, tag = split_tag(reference)
            for step in self._client.api.pull(name, tag=tag, stream=True, decode=True):
                if "error" in step:
                    raise Infrastructure(f"cannot pull the image {reference}: {str(step['error']).strip()}")
                detail, layer = step.get("progressDetail") or {}, str(step.get("id", ""))
                if step.get("status") == "Downloading" and detail.get("total"):
                    counts[layer] = (int(detail["current"]), int(detail["total"]))
                elif layer in counts and step.get("status") in ("Download complete", "Pull complete"):
                    counts[layer] = (counts[layer][1], counts[layer][1])
                if progress:
                    progress(*(sum(column) for column in zip((0, 0), *counts.values(), strict=True)))
        note_use(_PULLED + reference)

    def build_recipe(self, recipe: Recipe) -> str:
        """Return the tag of a recipe's image; build it if there is none.

        Raises:
            UserError: one of its base images cannot be had.
            Infrastructure: the build failed.
        """
        tag, dockerfile = recipe.tag, str(recipe.folder / "Dockerfile")
        if self.has(tag):
            return tag
        # Packages come through the host's own network: its resolver, its proxies, its mirrors.
        proxies = {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
        with convert_engine_errors(f"build the image {tag}"), lock_image(tag):
            if find_image(self._client, tag) is None:
                began = time.monotonic()
                context = self._resolve_bases(read_folder(recipe.folder), dockerfile, recipe.folder.parent)
                self._build(context, tag, dockerfile, Infrastructure, network_mode="host", buildargs=proxies)
                log.info("built the image %s in %.0f s", tag, time.monotonic() - began)
        return tag

    def build(self, context: Snapshot, tag: str, *, network: bool, what: str = TASKS) -> None:
        """Build the context's ``Dockerfile`` as ``tag``, unless there is such an image.

        Args:
            context: all that it may copy.
            tag: of the image.
            network: whether its steps may use a network: the engine's bridge, never the host's own.
            what: the Dockerfile, for messages.

        Raises:
            UserError: it cannot be built here; the message quotes the builder.
        """
        note_use(tag)
        with convert_engine_errors("build a task's image"), lock_image(tag):
            if find_image(self._client, tag) is not None:
                return
            if not network:
                refuse_addresses(context["Dockerfile"].data.decode("utf-8", "replace"))
            cores = min(_BUILD_CORES, int(self._client.info()["NCPU"]))
            self._build(
                self._resolve_bases(context, what),
                tag,
                what,
                UserError,
                network_mode="default" if network else "none",
                container_limits={
                    "memory": _BUILD_BYTES,
                    "memswap": _BUILD_BYTES,
                    "cpusetcpus": f"0-{cores - 1}",
                },
            )

    def build_agent(self, dockerfile: str, source: Snapshot) -> str:
        """Return the tag of an agent's own image; build it if it is missing.

        Its steps may use the engine's bridge, as an author's own installation would use the network. What evolution
        edits is no part of it, so all agents of a lineage share one image.

        Args:
            dockerfile: a path of ``source``.
            source: the files that the Dockerfile may copy, unless ``.dockerignore`` names them.

        Raises:
            UserError: it cannot be built here; the message says why.
        """
        context = dict(docker_context(source, dockerfile))
        del context[dockerfile]
        context["Dockerfile"] = source[dockerfile]
        content = [
            [path, hashlib.sha256(entry.data).hexdigest(), str(entry.mode)]
            for path, entry in sorted(context.items())
        ]
        tag = f"{AGENT}:{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]}"
        if not self.has(tag):
            progress = Preparation("the agent's image")
            progress.say("building it, which takes minutes where it has many packages")
            self.build(context, tag, network=True, what=AGENTS)
            progress.say(f"built in {progress.seconds:.0f} s")
        return tag

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the start image of sandboxes from an image with a repository at ``/testbed``.

        It is made again if that image changed. An existing one does not need its source image.

        Returns:
            Whether it was made just now.

        Raises:
            UserError: the image ``reference`` cannot be used; the message says why.
        """
        return self._derive(reference, tag, prepared.ORIGIN, is_new=False)

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``, the image with its ``folder`` as a workspace with a baseline; raise as ``prepare``."""
        self._derive(image, tag, folder, is_new=True)

    def check(self, reference: str) -> None:
        """Check that sandboxes can be made of an image, which is prepared for them; raise as ``prepare``."""
        prepared.prepare(self._client, reference)

    def has_programs(self, reference: str) -> bool:
        """Return whether an image has the programs that sandboxes need; raise as ``prepare`` if it has other faults."""
        try:
            self.check(reference)
        except prepared.ProgramsMissing:
            return False
        return True

    def _derive(self, reference: str, tag: str, folder: str, *, is_new: bool) -> bool:
        note_use(tag)
        if not self.has(reference) and self.has(tag):
            return False
        return prepared.prepare(self._client, reference, tag=tag, repository=folder, is_new=is_new).made

    def list_recipes(self) -> list[str]:
        """Return the tags of all images of recipes, present and former ones, sorted."""
        return sorted(
            tag
            for tag, image in self._list()
            if tag.partition(":")[0] not in KINDS and _LABEL in (image.get("Labels") or ())
        )

    def list_images(self, kinds: Collection[str] = KINDS) -> Sequence[StoredImage]:
        """Return the images of some kinds, the longest unused first."""
        images = [
            StoredImage(
                tag,
                int(image["Size"]),
                max(float(image["Created"]), find_last_use(tag)),
                str((image.get("Labels") or {}).get(prepared.LABEL, "")),
            )
            for tag, image in self._list()
            if tag.partition(":")[0] in kinds
        ]
        return sorted(images, key=lambda image: (image.used, image.tag))

    def disk_bytes(self) -> int:
        """Return the bytes of all images of the kinds that are bounded, with common layers counted once."""
        return sum(self._layers([image.tag for image in self.list_images(BOUNDED)]).values())

    def collect(self, limit_bytes: int, spared: Collection[str] = ()) -> Sequence[str]:
        """Remove the longest unused images of those kinds until they fit into the limit; return the removed tags.

        Images that a container is made from, and those in ``spared``, stay.
        """
        images = list(self.list_images(BOUNDED))
        gone = []
        for image in list(images):
            if sum(self._layers([each.tag for each in images]).values()) <= limit_bytes:
                break
            if image.tag not in spared and self._remove(image):
                gone.append(image.tag)
                images.remove(image)
        return gone

    def collect_unused(self, now: float | None = None) -> list[str]:
        """Remove images of former recipes, and others that were not used for a week; return their tags.

        Images that a container still uses are kept.

        Args:
            now: seconds since 1970.
        """
        oldest = (time.time() if now is None else now) - UNUSED_S
        wanted = {recipes.load(name).tag for name in recipes.names()}
        unused = [StoredImage(tag, 0, 0.0) for tag in self.list_recipes() if tag not in wanted]
        unused += [image for image in self.list_images() if image.used < oldest]
        with convert_engine_errors("remove images"):
            return [image.tag for image in unused if self._remove(image)]

    def _list(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        with convert_engine_errors("list images"):
            return [
                (tag, image)
                for image in self._client.api.images()
                for tag in map(strip_registry, image["RepoTags"] or ())
                if tag.startswith(_RECIPE)
            ]

    def _layers(self, tags: Sequence[str]) -> Mapping[str, int]:
        """Return layer → bytes."""
        layers: dict[str, int] = {}
        for tag in tags:
            with convert_engine_errors(f"look at the image {tag}"):
                image = find_image(self._client, tag)
                if image is None:
                    continue
                names: list[str] = image["RootFS"].get("Layers") or []
                steps: Sequence[Mapping[str, Any]] = self._client.api.history(tag)  # type: ignore[no-untyped-call]
            sizes = [int(step["Size"]) for step in reversed(steps) if step["Size"]]
            if len(sizes) != len(names):
                # The history does not distinguish an empty layer from a step without one.
                sizes = [int(image["Size"]) // max(1, len(names))] * len(names)
            layers |= zip(names, sizes, strict=True)
        return layers

    def _remove(self, image: StoredImage) -> bool:
        """Remove an image, and the one that was pulled for it; return whether it is gone."""
        import docker

        pulled = [image.source] if find_last_use(_PULLED + image.source) else []
        for name in (image.tag, *pulled):
            try:
                slow_api(self._client).remove_image(name, noprune=True)
            except docker.errors.ImageNotFound:
                pass
            except docker.errors.APIError as error:
                log.warning("keeping the image %s: %s", name, error.explanation)
                return False
        for name in (image.tag, _PULLED + image.source):
            note_of(name).unlink(missing_ok=True)
        return True

    def _resolve_bases(self, context: Snapshot, what: str, folder: Path | None = None) -> Snapshot:
        """Return the context with the Dockerfile's recipes named by their tags; build them.

        Raises:
            UserError: a base image cannot be had.
        """
        lines, stages, bases = [], {"scratch"}, 0
        for line in context["Dockerfile"].data.decode("utf-8", "replace").splitlines():
            match = _FROM.match(line)
            if match and match[1] not in stages:
                line = line.replace(match[1], self._find_base(match[1], what, folder), 1)
            if match:
                bases += 1
                stages.add(match[2] or "")
            lines.append(line)
        if not bases:
            raise UserError(f"{what} has no FROM line that names an image")
        return {**context, "Dockerfile": Entry("\n".join([*lines, ""]).encode())}

    def _find_base(self, base: str, what: str, folder: Path | None) -> str:
        recipe = base.removeprefix(_RECIPE)
        if base != recipe and recipe in recipes.names(folder):
            return self.build_recipe(recipes.load(recipe, folder))
        if find_image(self._client, base) is not None or self.offered(base):
            return base
        instead = "" if folder else ", or write 'FROM dgm/python'"
        suite = ", or import the suite with --image python" if what == TASKS else ""
        raise UserError(
            f"{what} stands on {base}: the engine has no such image and no registry offers it; pull it{instead}{suite}"
        )

    def _build(self, context: Snapshot, tag: str, what: str, fault: type[Exception], **how: Any) -> None:  # noqa: ANN401
        """Build a context; raise ``fault`` with the last output of its programs if it fails."""
        log.info("building the image %s; some minutes where it has many packages", tag)
        steps: Generator[dict[str, Any], None, None] = self._client.api.build(
            fileobj=io.BytesIO(to_tar(context)),
            custom_context=True,
            tag=tag,
            labels={_LABEL: tag},
            # The user's proxies may hold passwords, which the steps could read.
            use_config_proxy=False,
            timeout=SLOW_S,
            rm=True,
            forcerm=True,
            decode=True,
            **how,
        )
        tail: deque[str] = deque(maxlen=_LINES)
        ends = time.monotonic() + SLOW_S
        for step in steps:
            if time.monotonic() > ends:
                steps.close()
                raise fault(f"{what} is not built within {SLOW_S // 60} minutes")
            if "error" in step:
                problem = str(step["error"]).strip().replace("\n", " ")[:_LINE_CHARACTERS]
                hint = f"; {_ALLOW}" if how["network_mode"] == "none" else ""
                raise fault(f"{what} cannot be built: {problem}: {' | '.join(tail)}{hint}")
            line = _COLOUR.sub("", str(step.get("stream", step.get("status", "")))).strip()
            log.debug("%s", line)
            tail += [line.rpartition("\n")[2][-_LINE_CHARACTERS:]] if line else []


def refuse_addresses(text: str) -> None:
    """Refuse a Dockerfile that adds an address, which the engine itself would fetch whatever network the steps have.

    Raises:
        UserError: it does, or could by a variable or an escape.
    """
    line = _FETCHES.search(_CONTINUED.sub(" ", text))
    if line:
        raise UserError(f"a task's Dockerfile fetches an address ({line[0].strip()[:100]}); {_ALLOW}")


def split_tag(reference: str) -> tuple[str, str]:
    """Return name and tag (or digest) of an image as the engine takes them."""
    name, at, digest = reference.partition("@")
    if at:
        return name, digest
    name, colon, tag = reference.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (reference, "latest")


Step = Callable[[ImageStore], object]
"""One step of making an image, which can be pickled; it blocks and raises as ``ImageStore`` does."""


class ImagePlans:
    """Images of tasks on several engines or nodes: planned here, made where a sandbox needs one.

    A benchmark asks for images as it asks one Docker engine. Images that only this machine has are not sent.

    They raise ``UserError`` if the nodes have no images.
    """

    def __init__(self, node_engine: str = "docker") -> None:
        self._node_engine = node_engine
        self._steps: dict[str, tuple[Step, ...]] = {}

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile`` as ``tag``.

        Raises:
            UserError: it fetches an address, and has no network.
        """
        if not network:
            refuse_addresses(context["Dockerfile"].data.decode("utf-8", "replace"))
        self.plan(tag, methodcaller("build", dict(context), tag, network=network))

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``: the image with its ``folder`` as a workspace."""
        self.plan(tag, *self._steps_of(image), methodcaller("hold", image, folder, tag))

    def prepare(self, sources: Sequence[str], tag: str) -> None:
        """Make ``tag``, the start image of an instance, of the first of ``sources`` that there is."""
        self.plan(tag, partial(_prepare, sources=tuple(sources), tag=tag))

    def check(self, image: str) -> None:
        """Check that sandboxes can be made of an image."""
        self.plan(image, *self._steps_of(image)[:1], methodcaller("check", image))

    def plan(self, tag: str, *steps: Step) -> None:
        """Make ``tag`` in these steps."""
        if self._node_engine == "bubblewrap":
            raise UserError(
                f"scale.node_engine=bubblewrap: the image {tag} needs Docker on the nodes: use docker or auto"
            )
        self._steps[tag] = steps

    def steps(self, image: str) -> tuple[Step, ...]:
        """Return how the image of a sandbox's specification is made; no step for that of a recipe."""
        if not image.startswith(IN_ENGINE):
            return ()
        tag = image.removeprefix(IN_ENGINE)
        if tag not in self._steps:
            self.check(tag)
        return self._steps[tag]

    def _steps_of(self, image: str) -> tuple[Step, ...]:
        return self._steps.get(image, (partial(_find, names=(image,)),))


def _prepare(store: ImageStore, sources: Sequence[str], tag: str) -> None:
    if not store.has(tag):
        store.prepare(_find(store, sources), tag)


def _find(store: ImageStore, names: Sequence[str]) -> str:
    """Return the first name of which there is an image, pulled if necessary."""
    for name in names:
        if store.has(name):
            return name
    for name in names:
        if store.offered(name):
            store.pull(name)
            return name
    raise UserError(
        f"no image {names[0]} here, and no registry offers it: push it to a registry that the nodes reach, or copy "
        f"it: docker save {names[0]} | ssh NODE docker load"
    )
