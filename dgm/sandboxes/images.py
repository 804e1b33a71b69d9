"""Docker images of recipes: built once per recipe hash, from a registry's base or from Debian packages."""

import fcntl
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.sandboxes import recipes
from dgm.sandboxes.bootstrap import bootstrap
from dgm.sandboxes.recipes import Recipe

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

_REGISTRY_ANSWERS_WITHIN_S = 10
_LABEL = "dgm.recipe"


def ensure(client: "DockerClient", recipe: Recipe) -> str:
    """The tag of the recipe's image, built first if there is none; waits while another process builds it.

    Raises:
        UserError: no registry answers and this machine cannot bootstrap.
        Infrastructure: the build failed.
    """
    if _present(client, recipe.tag):
        return recipe.tag
    with _lock(recipe):
        if not _present(client, recipe.tag):
            _build(client, recipe)
    return recipe.tag


def present(client: "DockerClient") -> list[str]:
    """Tags of all images that were built from recipes, sorted."""
    images = client.api.images(filters={"label": _LABEL})
    return sorted(tag for image in images for tag in image["RepoTags"] or ())


def collect(client: "DockerClient") -> list[str]:
    """Removes images of recipes that are no longer there in that form; returns their tags.

    One that a container still uses is kept.
    """
    import docker

    wanted = {recipes.load(name).tag for name in recipes.names()}
    removed = []
    for tag in present(client):
        if tag not in wanted:
            try:
                client.images.remove(tag)
            except docker.errors.APIError as error:
                log.warning("keeping the image %s: %s", tag, error.explanation)
            else:
                removed.append(tag)
    return removed


def _present(client: "DockerClient", tag: str) -> bool:
    import docker

    try:
        client.api.inspect_image(tag)  # type: ignore[no-untyped-call]
    except docker.errors.ImageNotFound:
        return False
    return True


@contextmanager
def _lock(recipe: Recipe) -> Iterator[None]:
    """One builder per image on this machine."""
    with (cache_folder("locks") / f"{recipe.name}-{recipe.digest[:16]}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(client: "DockerClient", recipe: Recipe) -> None:
    bases = _bases(recipe)
    if all(_present(client, base) or _offered(base) for base in bases):
        _build_from_registry(client, recipe)
    else:
        log.info("no registry offers %s", ", ".join(bases))
        with tempfile.TemporaryDirectory(prefix="dgm-bootstrap-") as folder:
            _import(client, recipe, bootstrap(recipe, Path(folder)))
    log.info("built the image %s", recipe.tag)


def _bases(recipe: Recipe) -> list[str]:
    lines = (recipe.folder / "Dockerfile").read_text(encoding="utf-8").splitlines()
    return [line.split()[1] for line in lines if line.upper().startswith("FROM ")]


def _offered(base: str) -> bool:
    """Whether a registry answers for this image, asked through the engine with its mirrors and proxies."""
    import docker
    import requests

    with_patience = docker.from_env(timeout=_REGISTRY_ANSWERS_WITHIN_S)
    try:
        with_patience.api.inspect_distribution(base)  # type: ignore[no-untyped-call]
    except (docker.errors.APIError, requests.exceptions.RequestException):
        return False
    finally:
        with_patience.close()
    return True


def _build_from_registry(client: "DockerClient", recipe: Recipe) -> None:
    log.info("building the image %s", recipe.tag)
    steps: Iterator[dict[str, Any]] = client.api.build(
        path=str(recipe.folder),
        tag=recipe.tag,
        labels={_LABEL: recipe.name},
        rm=True,
        forcerm=True,
        decode=True,
    )
    for step in steps:
        if "error" in step:
            raise Infrastructure(f"{recipe.folder / 'Dockerfile'}: {str(step['error']).strip()}")
        log.debug("%s", str(step.get("stream", step.get("status", ""))).rstrip())


def _import(client: "DockerClient", recipe: Recipe, archive: Path) -> None:
    name, _, tag = recipe.tag.rpartition(":")
    client.api.import_image_from_file(
        str(archive), repository=name, tag=tag, changes=[f"LABEL {_LABEL}={recipe.name}"]
    )
    if not _present(client, recipe.tag):
        raise Infrastructure(f"the engine did not import {archive} as {recipe.tag}")
