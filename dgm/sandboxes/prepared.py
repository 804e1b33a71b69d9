"""Images that sandboxes start from: any image, with the sandboxes' users and, where wanted, its repository's baseline.

``image_start.sh`` and ``prepare_inside.py`` run once inside a container of the image. The result's label is a digest of
all that it was made of, so that a changed image or a changed version gives a new one.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from dgm.bounded_reading import parse_json
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.engine_client import (
    SLOW_S,
    convert_engine_errors,
    find_image,
    helper_container,
    lock_image,
    slow_api,
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
USERS = "dgm.prepared.users"
"""Label of a prepared image: the users that it knows."""
COPIED_MB = "dgm.work.mb"
"""Label of an image with a baseline: MiB for a copy of its repository."""
ORIGIN = "/testbed"
"""Folder of an image whose repository becomes the baseline with its own files, and without its history."""
GROUP = 10001
"""Gid of agents in images that are made from no recipe."""
NEEDS = "sandboxes need sh, git, python3 (3.9 or later), and GNU's tar, find and coreutils"
_PREPARE_VERSION = 4
"""Raised when ``prepare_inside.py`` changes, so that images are made again."""
_MEMORY = "4g"
_LOG_BYTES = 20_000


class Prepared(NamedTuple):
    """A prepared image."""

    tag: str
    made: bool
    """Whether it was made just now."""


class ImageMissing(UserError):
    """The engine has no such image."""


class ProgramsMissing(UserError):
    """An image lacks programs that sandboxes need."""


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
        ImageMissing: the engine has no such image.
        ProgramsMissing: the image lacks programs; the message names them.
        UserError: it cannot be used; the message says why.
    """
    users = [str(DOCKER.start), str(DOCKER.stop), str(group)]
    words = [*users, "new" if is_new else "own", repository] if repository else users
    with convert_engine_errors(f"prepare the image {reference}"):
        base = find_image(client, reference)
        if base is None:
            raise ImageMissing(f"the engine has no image {reference}: pull or build it first")
        if not repository and _labels(base).get(USERS) == " ".join(users):
            return Prepared(reference, made=False)
        digest = hashlib.sha256(f"{base['Id']} {words} {_PREPARE_VERSION}".encode()).hexdigest()
        tag = tag or f"{REPOSITORY}:{digest[:24]}"
        if _is_fresh(client, tag, digest):
            return Prepared(tag, made=False)
        with lock_image(tag):
            before = find_image(client, tag)
            if _is_fresh(client, tag, digest):
                return Prepared(tag, made=False)
            began = time.monotonic()
            labels = {LABEL: reference, MADE_OF: digest, USERS: " ".join(users)}
            _make(client, str(base["Id"]), tag, words, labels)
            log.info("prepared the image %s as %s in %.1f s", reference, tag, time.monotonic() - began)
            if before is not None:
                _remove_former(client, str(before["Id"]))
    return Prepared(tag, made=True)


def _labels(image: Mapping[str, Any]) -> Mapping[str, str]:
    return image["Config"].get("Labels") or {}


def _is_fresh(client: "DockerClient", tag: str, digest: str) -> bool:
    image = find_image(client, tag)
    return image is not None and _labels(image).get(MADE_OF) == digest


def _make(
    client: "DockerClient", base: str, tag: str, words: Sequence[str], labels: Mapping[str, str]
) -> None:
    import docker

    start, program = (
        files("dgm.sandboxes").joinpath(name).read_text(encoding="utf-8")
        for name in ("image_start.sh", "prepare_inside.py")
    )
    command = ["/bin/sh", "-c", start, "start", str(SLOW_S), program, *words]
    api = slow_api(client)
    with helper_container(client, base, _MEMORY, command) as ident:
        try:
            api.start(ident)
        except docker.errors.APIError as error:
            if "/bin/sh" in str(error.explanation):
                raise ProgramsMissing(f"the image {labels[LABEL]} lacks /bin/sh: {NEEDS}") from error
            raise
        code = api.wait(ident, timeout=SLOW_S + 60)["StatusCode"]
        output = api.logs(ident, tail=20)[-_LOG_BYTES:].decode("utf-8", "replace")
        report = _read_report(labels[LABEL], int(code), output)
        name, _, version = tag.rpartition(":")
        final = {**labels, COPIED_MB: str(report["work_mb"])}
        changes = [f"LABEL {key}={json.dumps(value)}" for key, value in final.items()]
        changes += ["ENTRYPOINT []", 'CMD ["/bin/sh"]', "WORKDIR /", "USER 0"]
        api.commit(ident, repository=name, tag=version, changes=changes)


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
    if "lacks" in report:
        raise ProgramsMissing(f"the image {reference} lacks {report['lacks']}: {NEEDS}")
    if "unusable" in report:
        raise UserError(f"the image {reference} cannot be used: {report['unusable']}")
    return report


def _remove_former(client: "DockerClient", ident: str) -> None:
    """Remove the image that a tag pointed at before, unless a container is made from it or it has another name."""
    import docker

    try:
        slow_api(client).remove_image(ident, noprune=True)
    except docker.errors.APIError as error:
        log.info("keeping the image %s: %s", ident, error.explanation)
