"""The address of the engine, found as the Docker CLI finds it."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.sandboxes.engine_address import TlsFiles, resolve_address, use_engine


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def configure(home: Path, **config: str) -> None:
    """Write the Docker CLI's configuration."""
    (home / ".docker").mkdir(parents=True, exist_ok=True)
    (home / ".docker" / "config.json").write_text(json.dumps(config))


def add_context(home: Path, name: str, host: str, tls: tuple[str, ...] = (), **more: object) -> Path:
    """Add a context of the Docker CLI; return the folder of its certificates."""
    ident = hashlib.sha256(name.encode()).hexdigest()
    meta = home / ".docker" / "contexts" / "meta" / ident
    meta.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": False, **more}
    (meta / "meta.json").write_text(
        json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}})
    )
    folder = home / ".docker" / "contexts" / "tls" / ident / "docker"
    for file in tls:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return folder


def url(home: Path, **environment: str) -> str:
    return resolve_address(environment, home).url


def test_without_anything_it_is_the_default_socket(home):
    found = resolve_address({}, home)
    assert (found.url, found.origin) == ("unix:///var/run/docker.sock", "")


def test_an_empty_variable_is_unset(home):
    assert url(home, DGM_ENGINE="", DOCKER_HOST="", DOCKER_CONTEXT="") == "unix:///var/run/docker.sock"


def test_the_first_that_is_given_counts(home):
    configure(home, currentContext="work")
    add_context(home, "work", "unix:///work.sock")
    add_context(home, "other", "unix:///other.sock")
    assert url(home) == "unix:///work.sock"
    assert url(home, DOCKER_CONTEXT="other") == "unix:///other.sock"
    assert url(home, DOCKER_CONTEXT="other", DOCKER_HOST="unix:///host.sock") == "unix:///host.sock"
    given = {"DOCKER_HOST": "unix:///host.sock", "DGM_ENGINE": "unix:///engine.sock"}
    assert url(home, **given) == "unix:///engine.sock"


def test_a_call_comes_before_the_environment_and_leaves_it_as_it_was(home):
    given = {"DGM_ENGINE": "unix:///engine.sock"}
    with use_engine("unix:///call.sock"):
        assert str(resolve_address(given, home)) == "unix:///call.sock (engine)"
        with use_engine(None):
            assert url(home, **given) == "unix:///call.sock"
    assert url(home, **given) == "unix:///engine.sock"


def test_calls_at_once_have_an_engine_each(home):
    async def look(address):
        with use_engine(address):
            await asyncio.sleep(0)
            return await asyncio.to_thread(url, home)

    async def both():
        return await asyncio.gather(look("unix:///one.sock"), look("unix:///two.sock"))

    assert asyncio.run(both()) == ["unix:///one.sock", "unix:///two.sock"]


def test_the_default_context_is_the_default_socket(home):
    configure(home, currentContext="work")
    add_context(home, "work", "unix:///work.sock")
    assert url(home, DOCKER_CONTEXT="default") == "unix:///var/run/docker.sock"


def test_the_configuration_may_lie_elsewhere(home, tmp_path):
    configure(home, currentContext="work")
    add_context(home, "work", "unix:///work.sock")
    moved = (home / ".docker").rename(tmp_path / "moved")
    assert url(home, DOCKER_CONFIG=str(moved)) == "unix:///work.sock"


def test_a_context_brings_its_certificates(home):
    folder = add_context(home, "far", "tcp://far:2376", ("ca.pem", "cert.pem", "key.pem"))
    found = resolve_address({"DOCKER_CONTEXT": "far"}, home)
    assert found.tls == TlsFiles(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", verify=True)


def test_a_context_may_do_without_a_certificate_of_its_own(home):
    folder = add_context(home, "far", "tcp://far:2376", ("ca.pem",), SkipTLSVerify=True)
    found = resolve_address({"DOCKER_CONTEXT": "far"}, home)
    assert found.tls == TlsFiles(folder / "ca.pem", None, None, verify=False)


def test_variables_encrypt_an_address_of_a_variable(home, tmp_path):
    place = tmp_path / "certificates"
    place.mkdir()
    (place / "ca.pem").touch()
    found = resolve_address({"DOCKER_HOST": "tcp://far", "DOCKER_CERT_PATH": str(place)}, home)
    assert (found.port, found.tls) == (2376, TlsFiles(place / "ca.pem", None, None, verify=False))
    verified = {"DOCKER_HOST": "tcp://far", "DOCKER_TLS_VERIFY": "1"}
    assert resolve_address(verified, home).tls == TlsFiles(None, None, None, verify=True)


def test_variables_do_not_encrypt_the_address_of_a_context(home):
    add_context(home, "far", "tcp://far")
    found = resolve_address({"DOCKER_CONTEXT": "far", "DOCKER_TLS_VERIFY": "1"}, home)
    assert (found.port, found.tls) == (2375, None)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("unix://", ("unix", "", "", 0, "/var/run/docker.sock")),
        ("unix:///a/b.sock", ("unix", "", "", 0, "/a/b.sock")),
        ("tcp://10.0.0.1:99", ("tcp", "", "10.0.0.1", 99, "")),
        ("tcp://[fe80::1]:99/", ("tcp", "", "fe80::1", 99, "")),
        ("ssh://Host_A", ("ssh", "", "Host_A", 0, "/var/run/docker.sock")),
        ("ssh://me@host:2222", ("ssh", "me", "host", 2222, "/var/run/docker.sock")),
        ("ssh://host/run/podman.sock", ("ssh", "", "host", 0, "/run/podman.sock")),
    ],
)
def test_addresses_are_read(home, text, parts):
    found = resolve_address({"DOCKER_HOST": text}, home)
    assert (found.scheme, found.user, found.host, found.port, found.path) == parts
    assert resolve_address({"DOCKER_HOST": found.url}, home) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("npipe:////./pipe/docker_engine", "use WSL2"),
        ("localhost:2375", "begin with unix://, tcp:// or ssh://"),
        ("http://localhost:2375", "begin with unix://, tcp:// or ssh://"),
        ("tcp://", "write tcp://host:port"),
        ("tcp://me@host", "write tcp://host:port"),
        ("tcp://host/path", "write tcp://host:port"),
        ("tcp://host:many", "not an address"),
        ("ssh://me:secret@host", "without a password"),
        ("ssh://-oProxyCommand=touch%20x", "write ssh://user@host:port"),
        ("ssh://-l@host", "no name of a user"),
    ],
)
def test_what_is_no_address_is_refused_in_a_line(home, text, said):
    with pytest.raises(UserError, match=said) as caught:
        resolve_address({"DOCKER_HOST": text}, home)
    assert str(caught.value).startswith(f"DOCKER_HOST={text}: ")
    assert "\n" not in str(caught.value)


def test_a_context_that_is_not_there_is_refused(home):
    with pytest.raises(UserError, match="'gone' of DOCKER_CONTEXT: there is no such context"):
        resolve_address({"DOCKER_CONTEXT": "gone"}, home)


def test_a_configuration_that_is_not_json_is_refused(home):
    configure(home)
    (home / ".docker" / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not JSON"):
        resolve_address({}, home)


def test_certificates_that_are_nowhere_are_refused(home, tmp_path):
    given = {"DOCKER_HOST": "tcp://far", "DOCKER_CERT_PATH": str(tmp_path / "gone")}
    with pytest.raises(UserError, match=r"DOCKER_CERT_PATH=.*no such folder"):
        resolve_address(given, home)
