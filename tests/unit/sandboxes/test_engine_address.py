"""The address of the engine, found as the Docker CLI finds it."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.sandboxes.engine_address import resolve_address, use_engine


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch) -> Path:
    """The folder of the Docker CLI's configuration, of a user without any variable."""
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def add_context(config: Path, name: str, host: str, *, tls: bool = False) -> Path:
    """Add a context of the Docker CLI; return the folder of its certificates."""
    ident = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts" / "meta" / ident
    meta.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": False}
    (meta / "meta.json").write_text(
        json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}})
    )
    folder = config / "contexts" / "tls" / ident / "docker"
    return make_files(folder) if tls else folder


def make_files(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (folder / name).touch()
    return folder


def test_without_anything_it_is_the_default_socket(monkeypatch):
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.setenv(name, "")
    found = resolve_address()
    assert (found.url, found.socket, found.origin) == (
        "unix:///var/run/docker.sock",
        "/var/run/docker.sock",
        "",
    )


def test_the_first_that_is_given_counts(config, monkeypatch):
    (config / "config.json").write_text('{"currentContext": "work"}')
    add_context(config, "work", "unix:///work.sock")
    add_context(config, "other", "unix:///other.sock")
    assert str(resolve_address()) == "unix:///work.sock (the Docker CLI's current context 'work')"
    for name, value in (
        ("DOCKER_CONTEXT", "default"),
        ("DOCKER_CONTEXT", "other"),
        ("DOCKER_HOST", "unix:///host.sock"),
        ("DGM_ENGINE", "unix:///engine.sock"),
    ):
        monkeypatch.setenv(name, value)
        wanted = {"default": "/var/run/docker.sock", "other": "/other.sock"}.get(value, value)
        assert resolve_address().url == f"unix://{wanted.removeprefix('unix://')}"


def test_a_call_comes_before_the_environment_and_leaves_it_as_it_was(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "unix:///engine.sock")
    with use_engine("unix:///call.sock"):
        assert str(resolve_address()) == "unix:///call.sock (engine)"
        with use_engine(None):
            assert resolve_address().url == "unix:///call.sock"
    assert resolve_address().url == "unix:///engine.sock"


def test_calls_at_once_have_an_engine_each():
    async def look(address):
        with use_engine(address):
            await asyncio.sleep(0)
            return (await asyncio.to_thread(resolve_address)).url

    async def both():
        return await asyncio.gather(look("unix:///one.sock"), look("unix:///two.sock"))

    assert asyncio.run(both()) == ["unix:///one.sock", "unix:///two.sock"]


def test_a_context_brings_its_certificates(config, monkeypatch):
    folder = add_context(config, "far", "tcp://far:2376", tls=True)
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    found = resolve_address()
    assert (found.url, found.tls.ca_cert, found.tls.verify) == (
        "tcp://far:2376",
        str(folder / "ca.pem"),
        True,
    )


def test_variables_encrypt_an_address_of_a_variable_and_not_of_a_context(config, tmp_path, monkeypatch):
    add_context(config, "far", "tcp://far:1")
    folder = make_files(tmp_path / "certificates")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(folder))
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert resolve_address().tls is None
    monkeypatch.setenv("DOCKER_HOST", "tcp://far:1")
    assert resolve_address().tls.cert == (str(folder / "cert.pem"), str(folder / "key.pem"))
    monkeypatch.setenv("DOCKER_HOST", "ssh://far")
    assert resolve_address().tls is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("npipe:////./pipe/docker_engine", "begin with unix://, tcp:// or ssh://"),
        ("localhost:2375", "begin with unix://, tcp:// or ssh://"),
        ("tcp://", "Invalid bind address"),
        ("tcp://host", "port is required"),
        ("tcp://host:many", "Port could not be cast"),
        ("ssh://me:secret@host", "Invalid bind address"),
        ("ssh://host/run/docker.sock", "no path allowed"),
        ("ray", "a Docker engine is needed"),
    ],
)
def test_what_is_no_address_is_refused_in_a_line(monkeypatch, text, message):
    monkeypatch.setenv("DOCKER_HOST", text)
    with pytest.raises(UserError, match=message) as caught:
        resolve_address()
    assert str(caught.value).startswith(f"DOCKER_HOST={text}: ")
    assert "\n" not in str(caught.value)


def test_a_context_that_is_not_there_or_broken_is_refused(config, monkeypatch):
    monkeypatch.setenv("DOCKER_CONTEXT", "gone")
    with pytest.raises(UserError, match="'gone' of DOCKER_CONTEXT: there is no such context"):
        resolve_address()
    meta = add_context(config, "gone", "unix://").parents[2] / "meta" / hashlib.sha256(b"gone").hexdigest()
    (meta / "meta.json").write_text("{")
    with pytest.raises(UserError, match=r"'gone' of DOCKER_CONTEXT: .*corrupted"):
        resolve_address()


def test_certificates_that_are_nowhere_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "tcp://far:1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path / "gone"))
    with pytest.raises(UserError, match=r"DOCKER_HOST=tcp://far:1: .*certificate"):
        resolve_address()
