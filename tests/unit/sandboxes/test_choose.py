"""The choice of an engine, also where the one that is meant does not answer, and what is told of several."""

import asyncio
import contextlib
import logging
import sys
from types import SimpleNamespace

import pytest

from dgm.archive.live import LiveCalls, LiveState, read_live
from dgm.errors import UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import choose, publish_live
from dgm.sandboxes.engine_address import (
    find_cluster,
    parse_address,
    resolve_address,
    resolve_addresses,
    use_engine,
)
from dgm.sandboxes.engine_group import EngineGroup
from tests.support.fake_engine import ROOTLESS, serve_engine
from tests.support.fake_engines import FakeEngine, connect_to


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    """A machine where bubblewrap works, whatever is installed."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DGM_UNBOUNDED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(BubblewrapEngine, "__init__", lambda _: None)
    monkeypatch.setattr(BubblewrapEngine, "prove", lambda _: None)


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("DOCKER_HOST", "unix:///nowhere/gone.sock", "gone.sock (DOCKER_HOST)"),
        ("DOCKER_CONTEXT", "nope", "there is no such context"),
    ],
)
def test_auto_says_why_the_engine_that_was_meant_is_not_used(monkeypatch, caplog, variable, value, reason):
    monkeypatch.setenv(variable, value)
    with caplog.at_level(logging.WARNING):
        assert choose("auto").name == "bubblewrap"
    (record,) = caplog.records
    assert reason in record.message
    assert record.message.endswith("using bubblewrap")


GONE = "unix:///nowhere/gone.sock"
REFUSED = [
    # DGM_ENGINE, what --engine names, the sandbox, the message
    (GONE, None, "auto", r"no Docker engine answers at unix://.*gone\.sock \(DGM_ENGINE\)"),
    ("unix:///nowhere/other.sock", GONE, "auto", r"gone\.sock \(--engine\)"),
    (None, "ssh://me@far", "bubblewrap", r"^--engine=ssh://me@far: the sandbox is bubblewrap.*leave --engine out"),
    (None, None, "podmann", r"unknown name .*there are: bubblewrap, docker, ray"),
    ("ray", None, "docker", "DGM_ENGINE=ray: a Ray cluster; here a Docker engine is needed"),
    (None, "ray", "bubblewrap", "--engine=ray: the sandbox is bubblewrap"),
    ("ssh://user@host", None, "ray", "DGM_ENGINE=ssh://user@host: a Docker engine, and the sandbox is ray"),
    *((text, None, "auto", r"write ray, or ray://HOST:PORT") for text in
      ("ray://", "ray://head", "ray://head:0", "ray://head:70000", "ray://a b:1")),
    (None, ["ssh://a", "ssh://a"], "auto", "^--engine=ssh://a: is named twice"),
    (None, ["ssh://a", "far"], "auto", "^--engine=far: begin with unix://"),
    (None, ["ray", "ssh://a"], "auto", "^--engine=ray ssh://a: a Ray cluster is named alone"),
]  # fmt: skip


@pytest.mark.parametrize(("variable", "option", "name", "message"), REFUSED)
def test_an_engine_that_cannot_be_used_is_one_line(monkeypatch, variable, option, name, message):
    if variable:
        monkeypatch.setenv("DGM_ENGINE", variable)
    with (
        pytest.raises(UserError, match=message) as raised,
        use_engine(option, "--engine") if option else contextlib.nullcontext(),
    ):
        choose(name)
    assert "\n" not in str(raised.value)


def test_the_variable_leaves_bubblewrap_to_a_user_who_names_it(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ssh://me@far")
    assert choose("bubblewrap").name == "bubblewrap"


def test_an_engine_that_bounds_nothing_is_refused_until_it_is_accepted(monkeypatch, tmp_path, caplog):
    with serve_engine(tmp_path / "engine.sock", info=ROOTLESS) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(UserError, match=r"does not bound processes and memory .*DGM_UNBOUNDED=1$"):
            choose("docker")
        assert choose("auto").name == "bubblewrap"
        assert "does not bound processes and memory" in caplog.text
        monkeypatch.setenv("DGM_UNBOUNDED", "1")
        assert choose("docker").name == "docker"


def test_what_is_no_engine_is_refused(monkeypatch, tmp_path):
    with serve_engine(tmp_path / "engine.sock", version={"hello": "world"}) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(UserError, match="what answers there is no Docker engine"):
            choose("docker")


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


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    monkeypatch.setenv("DGM_ENGINE", "ray://127.0.0.1:1")
    message = r"^no Ray cluster at 127\.0\.0\.1:1: start one with .*refused"
    with pytest.raises(UserError, match=message) as raised:
        choose("auto")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("between", [" ", ", ", ","])
def test_several_engines_are_one_that_answers_while_one_of_them_does(monkeypatch, tmp_path, between):
    with serve_engine(tmp_path / "engine.sock") as address:
        monkeypatch.setenv("DGM_ENGINE", f"unix://{tmp_path}/gone.sock{between}{address}")
        group = choose("auto")
    assert (group.name, group.machine) == ("docker", "x86_64")
    assert [bool(node.problem) for node in group.nodes()] == [True, False]


def test_an_engine_that_bounds_nothing_is_not_used_among_several(tmp_path):
    with (
        serve_engine(tmp_path / "one.sock") as one,
        serve_engine(tmp_path / "two.sock", info=ROOTLESS) as two,
        use_engine([one, two]),
    ):
        first, second = choose("docker").nodes()
    assert first.problem == ""
    assert second.problem.startswith(f"no Docker sandbox: the engine at {two}"[:50])


def test_a_path_may_hold_what_stands_between_addresses(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "unix:///a, b.sock unix:///c d.sock")
    assert [address.socket for address in resolve_addresses()] == ["/a, b.sock", "/c d.sock"]


def test_what_needs_one_engine_says_so():
    with (
        use_engine(["ssh://a", "ssh://b"], "--engine"),
        pytest.raises(UserError, match=r"^--engine=ssh://a ssh://b: one Docker engine is needed here"),
    ):
        resolve_address()


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def test_busy_slots_of_each_engine_are_told_beside_the_log(tmp_path):
    async def go():
        engines = {"a": FakeEngine(cpus=4), "b": FakeEngine(cpus=2)}
        group = EngineGroup([parse_address(f"ssh://{name}", "") for name in engines], connect_to(engines))
        async with publish_live(tmp_path, lambda: LiveCalls(0, 0, None), group, every_s=0.005):
            async with group.open(SandboxSpec("python")):
                await until(lambda: [node.busy for node in read_live(tmp_path).nodes] == [1, 0])
            await until(lambda: [node.busy for node in read_live(tmp_path).nodes] == [0, 0])
            assert [node.opened for node in read_live(tmp_path).nodes] == [1, 0]
        assert read_live(tmp_path) == LiveState()

    asyncio.run(go())
