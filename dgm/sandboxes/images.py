"""Docker images of recipes: built once per recipe hash, from a registry's base or from Debian packages."""

import logging
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes import podman, recipes
from dgm.sandboxes.bootstrap import bootstrap
from dgm.sandboxes.engine_client import find_image, lock_image
from dgm.sandboxes.recipes import Recipe

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

_REGISTRY_ANSWERS_WITHIN_S = 10
_LABEL = "dgm.recipe"
_TAIL_LINES = 3
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def ensure(client: "DockerClient", recipe: Recipe) -> str:
    """Return the tag of the recipe's image; build it if there is none, or wait for another process that builds it.

    Raises:
        UserError: no registry answers and this machine cannot bootstrap.
        Infrastructure: the build failed.
    """
    if find_image(client, recipe.tag) is not None:
        return recipe.tag
    with lock_image(f"{recipe.name}-{recipe.digest[:16]}"):
        if find_image(client, recipe.tag) is None:
            _build(client, recipe)
    return recipe.tag


def list_images(client: "DockerClient") -> list[str]:
    """Return the tags of all images that were built from recipes, sorted."""
    images = client.api.images(filters={"label": _LABEL})
    return sorted(
        tag
        for image in images
        for tag in map(podman.strip_registry, image["RepoTags"] or ())
        # An image based on a recipe's image inherits its label.
        if tag.startswith(f"dgm/{image['Labels'][_LABEL]}:")
    )


def collect(client: "DockerClient") -> list[str]:
    """Remove images of recipes that no longer exist in that form; return their tags.

    Images that a container still uses are kept.
    """
    wanted = {recipes.load(name).tag for name in recipes.names()}
    return remove_images(client, [tag for tag in list_images(client) if tag not in wanted])


def remove_images(client: "DockerClient", tags: Iterable[str]) -> list[str]:
    """Remove images by their tags, but for those that a container still uses; return the tags that are gone."""
    import docker

    removed = []
    for tag in tags:
        try:
            client.images.remove(tag)
        except docker.errors.APIError as error:
            log.warning("keeping the image %s: %s", tag, error.explanation)
        else:
            removed.append(tag)
    return removed


def _build(client: "DockerClient", recipe: Recipe) -> None:
    started = time.monotonic()
    below = {
        f"dgm/{name}": ensure(client, recipes.load(name, recipe.folder.parent)) for name in recipe.stands_on
    }
    foreign = [base for base in recipe.bases if base not in below]
    if all(find_image(client, base) is not None or is_offered(client, base) for base in foreign):
        _build_from_dockerfile(client, recipe, below)
    elif below:
        raise UserError(f"{recipe.folder / 'Dockerfile'}: no registry offers {', '.join(foreign)}")
    else:
        log.info("no registry offers %s", ", ".join(foreign))
        with tempfile.TemporaryDirectory(prefix="dgm-bootstrap-") as folder:
            _import(client, recipe, bootstrap(recipe, Path(folder)))
    log.info("built the image %s in %.0f s", recipe.tag, time.monotonic() - started)


def is_offered(client: "DockerClient", base: str) -> bool:
    """Return whether a registry answers for this image, asked through the engine with its mirrors and proxies."""
    import docker
    import requests
    from docker import auth

    api = client.api
    try:
        registry, _ = auth.resolve_repository_name(base)
        login = auth.get_config_header(api, registry)
        answer = api.get(
            f"{api.base_url}/v{api.api_version}/distribution/{base}/json",
            headers={"X-Registry-Auth": login} if login else {},
            timeout=_REGISTRY_ANSWERS_WITHIN_S,
        )
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return False
    return bool(answer.ok)


def _build_from_dockerfile(client: "DockerClient", recipe: Recipe, below: Mapping[str, str]) -> None:
    log.info("building the image %s; some minutes where it has many packages", recipe.tag)
    with tempfile.TemporaryDirectory(prefix="dgm-image-") as folder:
        dockerfile = Path(folder, "Dockerfile")
        dockerfile.write_text(resolve_bases(recipe, below), encoding="utf-8")
        steps: Iterator[dict[str, Any]] = client.api.build(
            path=str(recipe.folder),
            dockerfile=str(dockerfile),
            tag=recipe.tag,
            labels={_LABEL: recipe.name},
            # Packages come through the host's own network: its resolver, its proxies, its mirrors on private addresses.
            network_mode="host",
            buildargs=_proxies(),
            rm=True,
            forcerm=True,
            decode=True,
        )
        _follow_build(steps, recipe.folder / "Dockerfile")


def _follow_build(steps: Iterable[Mapping[str, Any]], dockerfile: Path) -> None:
    """Wait for the end of a build; the last output of its programs explains a failure."""
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    for step in steps:
        if "error" in step:
            raise Infrastructure(f"{dockerfile}: {' | '.join([*tail, str(step['error']).strip()])}")
        said = _COLOUR.sub("", str(step.get("stream", step.get("status", "")))).strip()
        log.debug("%s", said)
        tail += [said] if said else []


def resolve_bases(recipe: Recipe, below: Mapping[str, str]) -> str:
    """Return the text of the Dockerfile, with its base recipes named by their tags."""
    lines = []
    for line in (recipe.folder / "Dockerfile").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) > 1 and words[0].upper() == "FROM":
            words[1] = below.get(words[1], words[1])
            line = " ".join(words)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _proxies() -> dict[str, str]:
    """Return the proxies as build arguments, which every build knows and no image keeps."""
    return {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}


def _import(client: "DockerClient", recipe: Recipe, archive: Path) -> None:
    name, _, tag = recipe.tag.rpartition(":")
    client.api.import_image_from_file(
        str(archive), repository=name, tag=tag, changes=[f"LABEL {_LABEL}={recipe.name}"]
    )
    if find_image(client, recipe.tag) is None and find_image(client, f"{name}:latest") is not None:
        podman.name_import(client, recipe.tag)
    if find_image(client, recipe.tag) is None:
        raise Infrastructure(f"the engine did not import {archive} as {recipe.tag}")
