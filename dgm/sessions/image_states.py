"""The presence of a benchmark's images on this machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dgm.errors import DgmError, UserError

if TYPE_CHECKING:
    from docker import DockerClient

HERE, MISSING, UNKNOWN = "here", "not here", "not known: no Docker engine answers"
IN_ENGINE = "docker:"


def find_image_states(images: Sequence[str]) -> Mapping[str, str]:
    """Map each image, as tasks name it, to a few words on whether it can be used now."""
    try:
        tags = _list_tags()
    except DgmError:
        return dict.fromkeys(images, UNKNOWN)
    return {image: _image_state(image, tags) for image in images}


def _image_state(image: str, tags: frozenset[str]) -> str:
    from dgm.sandboxes import recipes

    if image.startswith(IN_ENGINE):
        reference = image.removeprefix(IN_ENGINE)
        tagged = reference if ":" in reference.rpartition("/")[2] else f"{reference}:latest"
        return HERE if tagged in tags or f"docker.io/{tagged}" in tags else MISSING
    try:
        tag = recipes.load(image).tag
    except UserError:
        return "unknown: no such recipe"
    return HERE if tag in tags else "not built yet"


def _list_tags() -> frozenset[str]:
    from dgm.sandboxes.docker import DockerEngine

    client: DockerClient = DockerEngine().client
    return frozenset(tag for image in client.api.images() for tag in image["RepoTags"] or ())
