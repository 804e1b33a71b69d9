"""The choice of an engine where the one that is meant does not answer."""

import logging
import sys
from types import SimpleNamespace

import pytest

from dgm.errors import UserError
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import choose
from dgm.sandboxes.engine_address import find_cluster, resolve_address, resolve_addresses, use_engine
from tests.support.fake_engine import ROOTLESS, serve_engine


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    """A machine where bubblewrap works, whatever is installed."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DGM_UNBOUNDED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(BubblewrapEngine, "__init__", lambda _: None)
    monkeypatch.setattr(BubblewrapEngine, "prove", lambda _: None)


def test_auto_says_why_the_engine_that_was_meant_is_not_used(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/gone.sock")
    with caplog.at_level(logging.WARNING):
        assert choose("auto").name == "bubblewrap"
    (record,) = caplog.records
    assert "gone.sock (DOCKER_HOST)" in record.message
    assert record.message.endswith("using bubblewrap")


def test_auto_takes_no_other_engine_than_the_named_one(monkeypatch, tmp_path):
    monkeypatch.setenv("DGM_ENGINE", f"unix://{tmp_path}/gone.sock")
    with pytest.raises(UserError, match=r"no Docker engine answers at unix://.*gone\.sock \(DGM_ENGINE\)"):
        choose("auto")


def test_the_message_names_what_gave_the_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DGM_ENGINE", f"unix://{tmp_path}/other.sock")
    with (
        use_engine(f"unix://{tmp_path}/gone.sock", "--engine"),
        pytest.raises(UserError, match=r"gone\.sock \(--engine\)"),
    ):
        choose("auto")


def test_an_engine_that_was_given_for_bubblewrap_is_refused():
    with (
        use_engine("ssh://me@far", "--engine"),
        pytest.raises(
            UserError, match=r"^--engine=ssh://me@far: the sandbox is bubblewrap.*leave --engine out"
        ),
    ):
        choose("bubblewrap")


def test_the_variable_leaves_bubblewrap_to_a_person_who_names_it(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ssh://me@far")
    assert choose("bubblewrap").name == "bubblewrap"


def test_a_context_that_is_no_good_is_said_too(monkeypatch, caplog):
    monkeypatch.setenv("DOCKER_CONTEXT", "nope")
    with caplog.at_level(logging.WARNING):
        assert choose("auto").name == "bubblewrap"
    assert "there is no such context" in caplog.text


def test_an_engine_that_bounds_nothing_is_refused(monkeypatch, tmp_path):
    with serve_engine(tmp_path / "engine.sock", info=ROOTLESS) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(UserError, match=r"does not bound processes and memory .*DGM_UNBOUNDED=1$"):
            choose("docker")
        monkeypatch.setenv("DGM_UNBOUNDED", "1")
        assert choose("docker").name == "docker"


def test_auto_says_that_an_engine_bounds_nothing(monkeypatch, tmp_path, caplog):
    with serve_engine(tmp_path / "engine.sock", info=ROOTLESS) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        assert choose("auto").name == "bubblewrap"
    assert "does not bound processes and memory" in caplog.text


def test_what_is_no_engine_is_refused(monkeypatch, tmp_path):
    with serve_engine(tmp_path / "engine.sock", version={"hello": "world"}) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(UserError, match="what answers there is no Docker engine"):
            choose("docker")


@pytest.mark.parametrize("name", ["podmann", "gvisor"])
def test_an_unknown_engine_is_one_line_with_the_known_names(name):
    with pytest.raises(UserError, match=r"unknown name .*there are: bubblewrap, docker, ray") as raised:
        choose(name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_a_cluster_and_another_engine_are_two_places(monkeypatch, name):
    monkeypatch.setenv("DGM_ENGINE", "ray")
    with pytest.raises(UserError, match=f"DGM_ENGINE=ray: a cluster, and the sandbox is {name}"):
        choose(name)


def test_what_needs_docker_says_that_a_cluster_is_none(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ray://head:6379")
    with pytest.raises(UserError, match="DGM_ENGINE=ray://head:6379: a Ray cluster; here a Docker engine"):
        resolve_address()


@pytest.mark.parametrize("text", ["ray://", "ray://head", "ray://head:0", "ray://head:70000", "ray://a b:1"])
def test_a_bad_address_of_a_cluster_is_one_line(monkeypatch, text):
    monkeypatch.setenv("DGM_ENGINE", text)
    with pytest.raises(UserError, match=r"write ray, or ray://HOST:PORT"):
        choose("auto")


@pytest.mark.parametrize(
    ("text", "address"), [("ray", "auto"), ("ray://head:6379", "head:6379"), ("ray://[::1]:1", "[::1]:1")]
)
def test_an_address_of_a_cluster_is_what_ray_takes(text, address):
    with use_engine(text):
        assert find_cluster() == address
    with use_engine("ssh://ray"):
        assert find_cluster() is None


def test_without_ray_the_engine_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"^the sandbox ray needs the package ray: pip install 'dgm\[ray\]'$"):
        choose("ray")


def test_the_sandbox_ray_and_a_docker_engine_are_two_places(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ssh://user@host")
    with pytest.raises(
        UserError, match="DGM_ENGINE=ssh://user@host: a Docker engine, and the sandbox is ray"
    ):
        choose("ray")


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    monkeypatch.setenv("DGM_ENGINE", "ray://127.0.0.1:1")
    with pytest.raises(
        UserError, match=r"^no Ray cluster at 127\.0\.0\.1:1: start one with .*refused"
    ) as raised:
        choose("auto")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("between", [" ", ", ", ","])
def test_several_engines_are_one_that_answers_while_one_of_them_does(monkeypatch, tmp_path, between):
    with serve_engine(tmp_path / "engine.sock") as address:
        monkeypatch.setenv("DGM_ENGINE", f"unix://{tmp_path}/gone.sock{between}{address}")
        group = choose("auto")
    assert (group.name, group.machine) == ("docker", "x86_64")
    assert [bool(node.problem) for node in group.nodes()] == [True, False]


def test_an_engine_that_bounds_nothing_is_not_used_among_several(monkeypatch, tmp_path):
    with (
        serve_engine(tmp_path / "one.sock") as one,
        serve_engine(tmp_path / "two.sock", info=ROOTLESS) as two,
        use_engine([one, two]),
    ):
        assert [node.problem[:50] for node in choose("docker").nodes()] == [
            "",
            f"no Docker sandbox: the engine at {two}"[:50],
        ]


def test_a_path_may_hold_what_stands_between_addresses(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "unix:///a, b.sock unix:///c d.sock")
    assert [address.socket for address in resolve_addresses()] == ["/a, b.sock", "/c d.sock"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ssh://a", "ssh://a"], "engine=ssh://a: is named twice"),
        (["ssh://a", "far"], "engine=far: begin with unix://"),
        (["ray", "ssh://a"], "engine=ray ssh://a: a Ray cluster is named alone"),
    ],
)
def test_several_engines_that_cannot_be_are_one_line(given, said):
    with pytest.raises(UserError, match=f"^{said}"), use_engine(given):
        choose("auto")


def test_what_needs_one_engine_says_so():
    with (
        use_engine(["ssh://a", "ssh://b"], "--engine"),
        pytest.raises(UserError, match=r"^--engine=ssh://a ssh://b: one Docker engine is needed here"),
    ):
        resolve_address()
