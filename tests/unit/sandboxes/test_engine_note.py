"""A run goes on with the engine that it was on, or says that it would be another."""

import pytest

from dgm.errors import UserError
from dgm.sandboxes.engine_address import check_engine, note_engine


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def note(monkeypatch):
    """Note the engine of a run that is on the named one."""

    def note(variable, value, *, run="id", sandbox="docker"):
        with monkeypatch.context() as patched:
            patched.setenv(variable, value)
            note_engine(run, sandbox)

    return note


def test_a_run_does_not_move_to_another_engine_by_itself(note, monkeypatch):
    note("DGM_ENGINE", "ssh://me@far")
    with pytest.raises(UserError, match=r"^r: .* were on ssh://me@far, and now .*docker\.sock: set engine"):
        check_engine("id", "r", "docker")
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far")
    check_engine("id", "r", "docker")


def test_a_person_may_move_it(note, monkeypatch):
    note("DOCKER_HOST", "ssh://me@far")
    monkeypatch.setenv("DGM_ENGINE", "unix://")
    check_engine("id", "r", "docker")


def test_nothing_is_noted_of_an_engine_that_nobody_named(monkeypatch):
    note_engine("id", "docker")
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far")
    check_engine("id", "r", "docker")


def test_a_run_on_several_engines_goes_on_with_all_of_them(note, monkeypatch):
    note("DGM_ENGINE", "ssh://a ssh://b")
    with pytest.raises(UserError, match=r"were on ssh://a ssh://b, and now .*several engines"):
        check_engine("id", "r", "docker")
    monkeypatch.setenv("DGM_ENGINE", "ssh://b ssh://a")
    check_engine("id", "r", "docker")


def test_the_id_of_a_run_is_no_path(note, tmp_path):
    note("DGM_ENGINE", "ssh://me@far", run="../../outside")
    assert not (tmp_path / "outside").exists()


def test_a_run_does_not_move_to_another_cluster_by_itself(note):
    note("DGM_ENGINE", "ray://10.0.0.1:6379", sandbox="ray")
    with pytest.raises(UserError, match=r"^r: .* were on ray://10\.0\.0\.1:6379, .* set engine"):
        check_engine("id", "r", "ray")
    check_engine("id", "r", "docker")


def test_a_run_that_a_person_moved_to_this_machines_cluster_stays_there(note):
    note("DGM_ENGINE", "ray://10.0.0.1:6379", sandbox="ray")
    note("DGM_ENGINE", "ray", sandbox="ray")
    check_engine("id", "r", "ray")
