"""``dgm.evaluate`` and ``dgm.grade_predictions``: what is wrong is said in Python, before anything is made."""

import pytest

import dgm
from dgm.errors import UserError
from dgm.exports.pack import pack
from dgm.exports.scrub import LocalIdentity
from tests.support.runs.made import make_run


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive with two runs."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        make_run(tmp_path / "archive" / name, verdicts=["+-", "++"])
    return tmp_path / "archive"


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"split": "other"}, r"^split 'other': there are search, promotion, holdout"),
        ({"attempts": 0}, r"^attempts 0: must be from 1 to 100"),
        ({"max_usd": float("nan")}, r"^max_usd nan: must be a number above 0"),
        ({"settings": {"policy.name": "hgm"}}, r"^settings policy: dgm\.evaluate sets models\.\*"),
    ],
)
def test_a_wrong_argument_is_named(archive, words, said):
    with dgm.open("one") as run, pytest.raises(UserError, match=said):
        dgm.evaluate(run.best, **words)
    assert not list(archive.rglob("evaluate*"))


def test_agents_of_one_run_are_evaluated_together(archive):
    with dgm.open("one") as one, dgm.open("two") as two:
        with pytest.raises(UserError, match="belong to one and two; evaluate those of one run at a time"):
            dgm.evaluate([one.best, two.best])
        with pytest.raises(UserError, match="say who is evaluated"):
            dgm.evaluate([])


@pytest.mark.starts_processes
def test_nothing_is_written_into_the_copy_of_a_packed_run(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pack(archive / "one", tmp_path / "one.dgm", LocalIdentity.here())
    with dgm.open(tmp_path / "one.dgm") as run:
        with pytest.raises(
            UserError,
            match=r"dgm\.export\('one\.dgm', 'FOLDER/'\)",
        ):
            dgm.evaluate(run.best)
        with pytest.raises(UserError, match="packed and can only be read"):
            run.resume()


def test_predictions_that_are_not_there_are_named(archive):
    with pytest.raises(UserError, match=r"none\.json: missing"):
        dgm.grade_predictions("none.json", "starter")
