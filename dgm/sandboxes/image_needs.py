"""The programs that a task's image must have, looked for once before anything is paid for.

Images of recipes have them; images with a workspace are checked again where they are prepared (``prepared``).
"""

from importlib.resources import files
from typing import TYPE_CHECKING

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.container import find_base
from dgm.sandboxes.engine_client import find_image, remove_container
from dgm.sandboxes.prepared import GROUP

if TYPE_CHECKING:
    from docker import DockerClient

NEEDS = "a task's image needs sh, git, python3 (3.9 or later), and GNU's tar, find and coreutils"
_SCRIPT = "image_needs.sh"
_ANSWERS_S = 120
_NOBODY = "65534:65534"
_NO_SHELL = "/bin/sh"


def check_needs(client: "DockerClient", reference: str) -> None:
    """Check that the engine's image ``reference`` has the programs by which dgm works and grades in it.

    Raises:
        UserError: there is no such image, or it lacks one; the message names all that it lacks.
        Infrastructure: the engine failed, or the image's programs did not end.
    """
    if find_image(client, reference) is None:
        raise UserError(f"the engine has no image {reference}: pull or build it first")
    lacks = find_lacks(client, reference)
    if lacks:
        raise UserError(f"the image {reference} lacks {', '.join(lacks)}: {NEEDS}")


def find_lacks(client: "DockerClient", reference: str) -> list[str]:
    """Return the programs that an image lacks; raise as ``check_needs``."""
    import docker
    import requests

    base = find_base(client, reference, reference, GROUP)
    made = client.api.create_container(
        base.image,
        entrypoint=["/bin/sh", "-c", files("dgm.sandboxes").joinpath(_SCRIPT).read_text(encoding="utf-8")],
        command=[],
        user=_NOBODY,
        working_dir="/",
        environment={"PATH": base.search_path},
        use_config_proxy=False,
        host_config=client.api.create_host_config(
            network_mode="none",
            mem_limit="512m",
            pids_limit=64,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
        ),
    )
    ident = str(made["Id"])
    try:
        client.api.start(ident)
        client.api.wait(ident, timeout=_ANSWERS_S)
        return client.api.logs(ident, stderr=False).decode("utf-8", "replace").split("\n")[:-1]
    except docker.errors.APIError as error:
        if _NO_SHELL in str(error.explanation):
            return [_NO_SHELL]
        raise
    except requests.exceptions.ReadTimeout as error:
        raise Infrastructure(
            f"the programs of the image {reference} did not end within {_ANSWERS_S} s"
        ) from error
    finally:
        remove_container(client, ident)
