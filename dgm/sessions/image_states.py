"""The presence of a benchmark's images on this machine."""

from collections.abc import Mapping, Sequence

from dgm.errors import DgmError, UserError
from dgm.sandboxes.podman import strip_registry

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
        return HERE if strip_registry(tagged) in tags else MISSING
    try:
        tag = recipes.load(image).tag
    except UserError:
        return "unknown: no such recipe"
    return HERE if tag in tags else "not built yet"


def _list_tags() -> frozenset[str]:
    """Return the tags of all images that every engine has."""
    from dgm.sandboxes.docker import DockerEngine
    from dgm.sandboxes.engine_address import resolve_addresses

    tags = []
    for address in resolve_addresses():
        images = DockerEngine(address).client.api.images()
        tags.append(frozenset(strip_registry(tag) for image in images for tag in image["RepoTags"] or ()))
    return frozenset.intersection(*tags)
