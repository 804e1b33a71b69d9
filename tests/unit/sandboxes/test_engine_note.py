"""A run goes on with the engine that it was on, or says that it would be another."""

import pytest

from dgm.errors import UserError
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import parse_address
from dgm.sandboxes.engine_group import EngineGroup
from dgm.sandboxes.engine_note import check_engine, note_engine
from tests.support.fake_engines import FakeEngine, connect_to


class Elsewhere(DockerEngine):
    """An engine that is only an address."""

    def __init__(self, url, origin):
        self._at = parse_address(url, origin)

    @property
    def address(self):
        return self._at


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)


def test_a_run_does_not_move_to_another_engine_by_itself(monkeypatch):
    note_engine("id", Elsewhere("ssh://me@far", "--engine"))
    with pytest.raises(UserError, match=r"^r: .* were on ssh://me@far, and now .*docker\.sock: say which"):
        check_engine("id", "r", "docker")
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far")
    check_engine("id", "r", "docker")


def test_a_person_may_move_it(monkeypatch):
    note_engine("id", Elsewhere("ssh://me@far", "--engine"))
    monkeypatch.setenv("DGM_ENGINE", "unix://")
    check_engine("id", "r", "docker")


def test_nothing_is_noted_of_an_engine_that_nobody_named(monkeypatch):
    note_engine("id", Elsewhere("unix://", ""))
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far")
    check_engine("id", "r", "docker")


def test_a_run_on_several_engines_goes_on_with_all_of_them(monkeypatch):
    engines = {"a": FakeEngine(), "b": FakeEngine()}
    addresses = [parse_address(f"ssh://{name}", "--engine") for name in engines]
    note_engine("id", EngineGroup(addresses, connect_to(engines)))
    with pytest.raises(UserError, match=r"were on ssh://a ssh://b, and now .*once for each"):
        check_engine("id", "r", "docker")
    monkeypatch.setenv("DGM_ENGINE", "ssh://b ssh://a")
    check_engine("id", "r", "docker")


def test_the_id_of_a_run_is_no_path(tmp_path):
    note_engine("../../outside", Elsewhere("ssh://me@far", "--engine"))
    assert not (tmp_path / "outside").exists()


class OnACluster:
    """An engine whose sandboxes are on nodes."""

    name = "ray"


def test_a_run_does_not_move_to_another_cluster_by_itself(monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ray://10.0.0.1:6379")
    note_engine("id", OnACluster())
    check_engine("id", "r", "ray")
    monkeypatch.delenv("DGM_ENGINE")
    with pytest.raises(UserError, match=r"^r: .* were on ray://10\.0\.0\.1:6379, .* --engine"):
        check_engine("id", "r", "ray")
    check_engine("id", "r", "docker")


def test_a_run_that_a_person_moved_to_this_machines_cluster_stays_there(monkeypatch):
    for address in ("ray://10.0.0.1:6379", "ray"):
        monkeypatch.setenv("DGM_ENGINE", address)
        note_engine("id", OnACluster())
    monkeypatch.delenv("DGM_ENGINE")
    check_engine("id", "r", "ray")
