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


FAR, CLUSTER = {"DGM_ENGINE": "ssh://me@far"}, {"DGM_ENGINE": "ray://10.0.0.1:6379"}
SEVERAL = {"DGM_ENGINE": "ssh://a ssh://b"}
SESSIONS = [
    # The variables and the sandbox of each earlier session, then those of the next one, and why it is refused.
    ([(FAR, "docker")], {}, "docker", r"^r: .* were on ssh://me@far, and now .*docker\.sock: set engine"),
    ([(FAR, "docker")], {"DOCKER_HOST": "ssh://me@far"}, "docker", ""),
    ([({"DOCKER_HOST": "ssh://me@far"}, "docker")], {"DGM_ENGINE": "unix://"}, "docker", ""),
    ([({}, "docker")], {"DOCKER_HOST": "ssh://me@far"}, "docker", ""),
    ([(SEVERAL, "docker")], {}, "docker", "were on ssh://a ssh://b, and now .*several engines"),
    ([(SEVERAL, "docker")], {"DGM_ENGINE": "ssh://b ssh://a"}, "docker", ""),
    ([(CLUSTER, "ray")], {}, "ray", r"^r: .* were on ray://10\.0\.0\.1:6379, .* set engine"),
    ([(CLUSTER, "ray")], {}, "docker", ""),
    ([(CLUSTER, "ray"), ({"DGM_ENGINE": "ray"}, "ray")], {}, "ray", ""),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "variables", "sandbox", "refusal"), SESSIONS)
def test_a_run_does_not_move_to_another_engine_by_itself(monkeypatch, earlier, variables, sandbox, refusal):
    for before, kind in earlier:
        with monkeypatch.context() as patched:
            for name, value in before.items():
                patched.setenv(name, value)
            note_engine("id", kind)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if not refusal:
        check_engine("id", "r", sandbox)
        return
    with pytest.raises(UserError, match=refusal):
        check_engine("id", "r", sandbox)


def test_the_id_of_a_run_is_no_path(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ENGINE", "ssh://me@far")
    note_engine("../../outside", "docker")
    assert not (tmp_path / "outside").exists()
