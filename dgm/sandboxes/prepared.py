"""Images that sandboxes start from: any image, with the sandboxes' users and, where wanted, its repository's baseline.

``prepare_inside.py`` runs once inside a container of the image. The result's label says of what it was made, so that a
changed image or a changed version gives a new one.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from dgm.bounded_reading import parse_json
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.engine_client import (
    convert_engine_errors,
    find_image,
    helper_config,
    lock_image,
    remove_container,
)
from dgm.sandboxes.users import DOCKER

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

REPOSITORY = "dgm/prepared"
LABEL = "dgm.prepared"
"""Label of a prepared image: the name of the image that it was made of."""
MADE_OF = "dgm.prepared.digest"
"""Label of a prepared image: a digest of all that it was made of."""
ORIGIN = "/testbed"
"""Folder of an image whose repository becomes the baseline with its own files, and without its history."""
USERS = "dgm.prepared.users"
"""Label of a prepared image: the users that it knows."""
COPIED_MB = "dgm.work.mb"
"""Label of an image with a baseline: MiB for a copy of its repository."""
GROUP = 10001
"""Gid of agents in images that are made from no recipe."""
_PREPARE_VERSION = 3
"""Raised when ``prepare_inside.py`` changes, so that images are made again."""
_TIMEOUT_S = 1800
_MEMORY = "4g"
_LOG_BYTES = 20_000
_START = """
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
command -v python3 >/dev/null || { echo '{"unusable": "it has no python3 for agents to run with"}'; exit 0; }
limit=$1 script=$2
shift 2
exec timeout -s KILL "$limit" python3 -I -c "$script" "$@"
"""


class Prepared(NamedTuple):
    """A prepared image."""

    tag: str
    made: bool
    """Whether it was made just now."""


def prepare(
    client: "DockerClient",
    reference: str,
    *,
    group: int = GROUP,
    tag: str = "",
    repository: str = "",
    is_new: bool = False,
) -> Prepared:
    """Return the image from which sandboxes of the image ``reference`` start; make it if there is none.

    Making one blocks for a second, with a repository for some.

    Args:
        client: the engine.
        reference: the image, by name or id. One that is prepared already is returned.
        group: gid of agents.
        tag: name of the result, which is made again if anything changed; default: a name for just this image.
        repository: ``ORIGIN``, or with ``is_new`` the folder of which a baseline is made; empty: there is none.
        is_new: whether the repository is made of all files of the folder, whatever history they have.

    Raises:
        UserError: the engine has no such image, or it cannot be used; the message says why.
        Infrastructure: the engine failed.
    """
    users = [str(DOCKER.start), str(DOCKER.stop), str(group)]
    words = [*users, "new" if is_new else "own", repository] if repository else users
    with convert_engine_errors(f"prepare the image {reference}"):
        base = find_image(client, reference)
        if base is None:
            raise UserError(f"the engine has no image {reference}: fetch, pull or build it first")
        if not repository and _labels(base).get(USERS) == " ".join(users):
            return Prepared(reference, made=False)
        script = files("dgm.sandboxes").joinpath("prepare_inside.py").read_text(encoding="utf-8")
        digest = hashlib.sha256(f"{base['Id']} {words} {_PREPARE_VERSION}".encode()).hexdigest()
        tag = tag or f"{REPOSITORY}:{digest[:24]}"
        if _is_fresh(client, tag, digest):
            return Prepared(tag, made=False)
        with lock_image(tag.replace("/", "-").replace(":", "-")):
            if _is_fresh(client, tag, digest):
                return Prepared(tag, made=False)
            before = find_image(client, tag)
            began = time.monotonic()
            labels = {LABEL: reference, MADE_OF: digest, USERS: " ".join(users)}
            _make(client, str(base["Id"]), tag, [str(_TIMEOUT_S), script, *words], labels)
            log.info("prepared the image %s as %s in %.1f s", reference, tag, time.monotonic() - began)
            if before is not None:
                _forget(client, str(before["Id"]))
    return Prepared(tag, made=True)


def _labels(image: Mapping[str, Any]) -> Mapping[str, str]:
    return image["Config"].get("Labels") or {}


def _is_fresh(client: "DockerClient", tag: str, digest: str) -> bool:
    image = find_image(client, tag)
    return image is not None and _labels(image).get(MADE_OF) == digest


def _make(client: "DockerClient", base: str, tag: str, words: list[str], labels: Mapping[str, str]) -> None:
    container = client.api.create_container(
        base,
        entrypoint=["/bin/sh", "-c", _START, "start"],
        command=words,
        user="0:0",
        working_dir="/",
        labels={LABEL: labels[LABEL]},
        # The user's proxies, which may hold passwords, would stay in the image.
        use_config_proxy=False,
        host_config=helper_config(client, _MEMORY, init=True),
    )
    ident = str(container["Id"])
    try:
        client.api.start(ident)
        code = client.api.wait(ident, timeout=_TIMEOUT_S + 60)["StatusCode"]
        output = client.api.logs(ident, tail=20)[-_LOG_BYTES:].decode("utf-8", "replace")
        report = _read_report(labels[LABEL], int(code), output)
        name, _, version = tag.rpartition(":")
        said = {**labels, COPIED_MB: str(report["work_mb"])}
        changes = [f"LABEL {key}={json.dumps(value)}" for key, value in said.items()]
        changes += ["ENTRYPOINT []", 'CMD ["/bin/sh"]', "WORKDIR /", "USER 0"]
        client.api.commit(ident, repository=name, tag=version, changes=changes)
    finally:
        remove_container(client, ident)


def _read_report(reference: str, code: int, output: str) -> Mapping[str, Any]:
    last = output.strip().rpartition("\n")[2]
    try:
        report: Mapping[str, Any] = parse_json(last) if code == 0 and last.startswith("{") else {}
    except ValueError:
        report = {}
    if not report:
        raise Infrastructure(
            f"the image {reference} could not be prepared (exit status {code}): {last[:300] or 'no output'}"
        )
    if "unusable" in report:
        raise UserError(f"the image {reference} cannot be used: {report['unusable']}")
    return report


def _forget(client: "DockerClient", ident: str) -> None:
    """Remove the image that a tag pointed at before, unless a container is made from it or it has another name."""
    import docker

    try:
        client.api.remove_image(ident, noprune=True)
    except docker.errors.APIError as error:
        log.info("keeping the image %s: %s", ident, error.explanation)
