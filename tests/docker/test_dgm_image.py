"""The image of the top-level ``Dockerfile``: an ordinary user searches in it, in bubblewrap or with the engine outside.

Where no registry offers the Python image, its base is Debian's Python on what ``sandboxes/prepare`` made, with the
certificates of this machine.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.minutes]

ROOT = Path(__file__).parents[2]
BASE, IMAGE = "dgm-test/python-base", "dgm-test/dgm"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BASE_FILE = f"""\
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates && apt-get clean
COPY {CERTIFICATES.name} {CERTIFICATES}
ENV PIP_CERT={CERTIFICATES}
"""
UNCONFINED = ("--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined")
SEARCH = (
    "run",
    "--model",
    "offline",
    "--benchmark",
    "starter",
    "--max-evaluations",
    "2",
    "--name",
    "inside",
    "--json",
)


def docker(*words, check=True) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=1200, check=False)
    assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not shutil.which("docker"):
        pytest.skip("needs the docker command")
    context = tmp_path_factory.mktemp("base")
    (context / "Dockerfile").write_text(BASE_FILE)
    shutil.copy(CERTIFICATES, context)
    docker("build", "--quiet", "--tag", BASE, str(context))
    docker("build", "--quiet", "--tag", IMAGE, "--build-arg", f"BASE={BASE}", str(ROOT))
    yield IMAGE
    docker("image", "rm", IMAGE, BASE, check=False)


def test_the_user_is_an_ordinary_one(image) -> None:
    assert docker("run", "--rm", "--entrypoint", "id", image, "--user").strip() == "1000"


def test_a_search_in_bubblewrap(image) -> None:
    run = json.loads(docker("run", "--rm", *UNCONFINED, image, *SEARCH, "--sandbox", "bubblewrap"))
    assert (run["evaluations"]["graded"], run["sandbox"]) == (2, "bubblewrap")


def test_a_search_with_the_engine_outside(image) -> None:
    socket = Path(
        docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").strip().removeprefix("unix://")
    )
    if not socket.is_socket():
        pytest.skip("the engine has no socket here")
    mounted = ("-v", f"{socket}:/var/run/docker.sock", "--group-add", str(socket.stat().st_gid))
    run = json.loads(docker("run", "--rm", *mounted, image, *SEARCH, "--sandbox", "docker"))
    assert (run["evaluations"]["graded"], run["sandbox"]) == (2, "docker")
