"""Images for workspaces inside them, made once from any image with a repository at ``/testbed``.

``repository_setup.py`` runs inside a container of the image and changes the repository. The result's tag identifies its
inputs, so that a changed image or a changed set-up gives a new one.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dgm.bounded_reading import parse_json
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.container import COPIED_MB
from dgm.sandboxes.engine_client import convert_engine_errors, find_image, lock_image

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

REPOSITORY = "dgm/instance"
LABEL = "dgm.instance"
"""Label of a derived image: the name of its source image."""
MADE_OF = "dgm.instance.digest"
"""Label of a derived image: a digest of its source image and set-up."""
WORKDIR = "/testbed"
_SCRIPT = "repository_setup.py"
_PREPARE_VERSION = "2"
"""Raised when the set-up changes, so that images are made again."""
_TIMEOUT_S = 1800
_MEMORY = "4g"
_LOG_BYTES = 20_000
_START = """
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
command -v python3 >/dev/null || { echo '{"unusable": "it has no python3 for agents to run with"}'; exit 0; }
exec timeout -s KILL "$1" python3 -I -c "$2"
"""


@dataclass(frozen=True, slots=True)
class DerivedImage:
    """An image for sandboxes with a workspace of their own."""

    tag: str
    made: bool
    """Whether it was made just now."""


def derive_image(client: "DockerClient", reference: str, tag: str = "") -> DerivedImage:
    """Return the derived image of the image ``reference``; make it if there is none, which blocks for some seconds.

    Args:
        client: the engine.
        reference: the image, by name or id.
        tag: name of the derived image, which is made again if the image or the set-up changed; default: a name for just
            this image and set-up.

    Raises:
        UserError: the engine has no such image, or it cannot be used; the message says why.
        Infrastructure: the engine failed.
    """
    with convert_engine_errors(f"prepare the image {reference}"):
        base = find_image(client, reference)
        if base is None:
            raise UserError(f"the engine has no image {reference}: fetch, pull or build it first")
        made_of = str(base["Id"])
        tag = tag or f"{REPOSITORY}:{_digest(made_of)[:16]}"
        if _is_fresh(client, tag, made_of):
            return DerivedImage(tag, made=False)
        with lock_image(tag.replace("/", "-").replace(":", "-")):
            if _is_fresh(client, tag, made_of):
                return DerivedImage(tag, made=False)
            before = find_image(client, tag)
            _make(client, reference, made_of, tag)
            if before is not None:
                _forget(client, str(before["Id"]))
    return DerivedImage(tag, made=True)


def script() -> str:
    """Return the script that runs inside an image."""
    return files("dgm.sandboxes").joinpath(_SCRIPT).read_text(encoding="utf-8")


def _is_fresh(client: "DockerClient", tag: str, base_id: str) -> bool:
    found = find_image(client, tag)
    return found is not None and (found["Config"].get("Labels") or {}).get(MADE_OF) == _digest(base_id)


def _digest(base_id: str) -> str:
    """Return the digest of a derived image's inputs: the image and the version of the set-up."""
    return hashlib.sha256(f"{base_id} {_PREPARE_VERSION}".encode()).hexdigest()


def _make(client: "DockerClient", reference: str, base_id: str, tag: str) -> None:
    began = time.monotonic()
    made = client.api.create_container(
        base_id,
        entrypoint=["/bin/sh", "-c", _START, "start"],
        command=[str(_TIMEOUT_S), script()],
        user="0:0",
        working_dir="/",
        labels={LABEL: reference},
        # They would stay in the image.
        use_config_proxy=False,
        host_config=client.api.create_host_config(
            network_mode="none",
            mem_limit=_MEMORY,
            pids_limit=256,
            security_opt=["no-new-privileges"],
            init=True,
        ),
    )
    ident = str(made["Id"])
    try:
        client.api.start(ident)
        code = client.api.wait(ident, timeout=_TIMEOUT_S + 60)["StatusCode"]
        output = client.api.logs(ident, tail=20)[-_LOG_BYTES:].decode("utf-8", "replace")
        report = _read_report(reference, int(code), output)
        _commit(
            client,
            ident,
            tag,
            {LABEL: reference, MADE_OF: _digest(base_id), COPIED_MB: str(report["work_mb"])},
        )
    finally:
        client.api.remove_container(ident, force=True, v=True)
    log.info("prepared the image %s as %s in %.1f s", reference, tag, time.monotonic() - began)


def _forget(client: "DockerClient", ident: str) -> None:
    """Remove the image that a tag pointed at before, unless a container is made from it or it has another name."""
    import docker

    try:
        client.api.remove_image(ident, noprune=True)
    except docker.errors.APIError as error:
        log.info("keeping the image %s: %s", ident, error.explanation)


def _read_report(reference: str, code: int, output: str) -> Mapping[str, Any]:
    lines = output.strip().splitlines()
    if code or not lines or not lines[-1].startswith("{"):
        said = lines[-1] if lines else "it said nothing"
        raise Infrastructure(
            f"the image {reference} could not be prepared (exit status {code}): {said[:300]}"
        )
    try:
        report: Mapping[str, Any] = parse_json(lines[-1])
    except ValueError as error:
        raise Infrastructure(f"the image {reference} could not be prepared: its report is {error}") from error
    if "unusable" in report:
        raise UserError(f"the image {reference} cannot be used: {report['unusable']}")
    return report


def _commit(client: "DockerClient", ident: str, tag: str, labels: Mapping[str, str]) -> None:
    name, _, version = tag.rpartition(":")
    changes = [f"LABEL {key}={json.dumps(value)}" for key, value in labels.items()]
    changes += ["ENTRYPOINT []", 'CMD ["/bin/sh"]', "WORKDIR /", "USER 0"]
    client.api.commit(ident, repository=name, tag=version, changes=changes)
