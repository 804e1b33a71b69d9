"""Sizes of images, asked from a registry before a pull: the engine knows them only afterwards."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from requests import Session

HUB, HUB_NAME = "registry-1.docker.io", "docker.io"
PLATFORM = {"os": "linux", "architecture": "amd64"}
ANSWERS_WITHIN_S = 10.0
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_HOST = re.compile(r"[.:]|^localhost$")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


def download_bytes(references: Sequence[str]) -> int | None:
    """Return the bytes to transfer for all of these, with common layers counted once; ``None`` if one is unknown."""
    import requests

    layers: dict[str, int] = {}
    with requests.Session() as session:
        for reference in references:
            try:
                layers |= _layers(session, *split_reference(reference))
            except (requests.RequestException, ValueError, KeyError, TypeError, StopIteration):
                return None
    return sum(layers.values())


def split_reference(reference: str) -> tuple[str, str, str]:
    """Return host, repository and tag (or digest) of a reference, by the engine's rules."""
    name, at, digest = reference.partition("@")
    first, slash, rest = name.partition("/")
    host, path = (first, rest) if slash and _HOST.search(first) else (HUB_NAME, name)
    repository, colon, tag = path.partition(":")
    if host == HUB_NAME:
        host = HUB
        repository = repository if "/" in repository else f"library/{repository}"
    return host, repository, digest if at else tag if colon else "latest"


def without_host(reference: str) -> str:
    """Return a reference without its registry, as another registry may have it."""
    first, slash, rest = reference.partition("/")
    return rest if slash and _HOST.search(first) else reference


def _layers(session: "Session", host: str, repository: str, tag: str) -> Mapping[str, int]:
    local = host.partition(":")[0] in ("localhost", "127.0.0.1")
    base = f"{'http' if local else 'https'}://{host}/v2/{repository}"
    manifest = _get_json(session, f"{base}/manifests/{tag}")
    if "manifests" in manifest:
        fits = (
            each["digest"]
            for each in manifest["manifests"]
            if all(each.get("platform", {}).get(key) == value for key, value in PLATFORM.items())
        )
        manifest = _get_json(session, f"{base}/manifests/{next(fits)}")
    return {str(layer["digest"]): int(layer["size"]) for layer in manifest["layers"]}


def _get_json(session: "Session", url: str) -> Mapping[str, Any]:
    headers = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}
    answer = session.get(url, headers=headers, timeout=ANSWERS_WITHIN_S)
    if answer.status_code == 401:
        headers["Authorization"] = f"Bearer {_fetch_token(session, answer.headers['WWW-Authenticate'])}"
        answer = session.get(url, headers=headers, timeout=ANSWERS_WITHIN_S)
    answer.raise_for_status()
    found: Mapping[str, Any] = answer.json()
    return found


def _fetch_token(session: "Session", challenge: str) -> str:
    """Return an anonymous token; images that need a login are not estimated."""
    asked = dict(_CHALLENGE.findall(challenge))
    realm = asked.pop("realm")
    answer = session.get(realm, params=asked, timeout=ANSWERS_WITHIN_S)
    answer.raise_for_status()
    said = answer.json()
    return str(said.get("token") or said["access_token"])
