"""``engine=`` names the Docker engine of one call, in every call that may open a sandbox."""

import pytest

import dgm
from dgm.errors import UserError
from tests.support.fake_engine import ROOTLESS, serve_engine
from tests.support.runs.made import make_run
from tests.support.suite_on_disk import make_suite

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a run, a suite and a file of predictions."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("DGM_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DGM_UNBOUNDED"):
        monkeypatch.delenv(name, raising=False)
    make_run(tmp_path / "one", verdicts=["+-", "++"])
    make_suite(tmp_path / "tiny")
    (tmp_path / "predictions.jsonl").write_text("")
    return tmp_path


OFFLINE = {"model": "offline"}
CALLS = {
    "evolve": lambda run, engine: dgm.evolve(model="offline", settings={"engine": engine}),
    "evolve_batch": lambda run, engine: dgm.evolve_batch(name="x", settings={"engine": engine, **OFFLINE}),
    "resume": lambda run, engine: run.resume(settings=[f"engine={engine}"]),
    "evaluate": lambda run, engine: dgm.evaluate(run.best, settings={"engine": engine}),
    "predictions": lambda run, engine: dgm.evaluate(
        "predictions.jsonl", benchmark="tiny", settings={"engine": engine}
    ),
    "solve": lambda run, engine: dgm.solve(run.best, "tiny", "mend it", settings={"engine": engine}),
    "replay": lambda run, engine: run.replay(what="evaluations", settings={"engine": engine}),
}


def test_what_is_no_address_is_refused_by_the_name_of_the_argument(folder):
    for call in CALLS.values():
        with dgm.open("one") as run, pytest.raises(UserError, match=r"^engine=far: begin with unix://"):
            call(run, "far")


def test_the_named_engine_is_the_one_that_is_asked(folder):
    with serve_engine(folder / "engine.sock", info=ROOTLESS) as address:
        for sandbox in ("auto", "docker"):
            with pytest.raises(
                UserError, match=r"the engine at unix://\S+engine.sock \(engine\) does not bound"
            ):
                dgm.evolve(model="offline", settings={"sandbox": sandbox, "engine": address})


def test_bubblewrap_takes_no_engine(folder):
    with pytest.raises(
        UserError, match=r"^engine=ssh://far: the sandbox is bubblewrap, .*: leave engine out"
    ):
        dgm.evolve(model="offline", settings={"sandbox": "bubblewrap", "engine": "ssh://far"})
