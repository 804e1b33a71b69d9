"""What an examination on held-out tasks costs, and that none of it is paid twice."""

import shutil

import pytest

from tests.unit.suite_on_disk import TASK, make_suite

pytestmark = pytest.mark.sandbox

PRICES = ("--set", "models.prices.offline.input=2", "--set", "models.prices.offline.output=8")


@pytest.fixture(scope="module")
def priced(dgm, tmp_path_factory):
    """A finished search whose offline model has a price, on a suite with one task to search and one to report on."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    suite = make_suite(tmp_path_factory.mktemp("suite"))
    held_out = suite / "tasks" / "totals-doubling-triples"
    shutil.copytree(suite / "tasks" / TASK, held_out)
    shutil.copytree(suite / "repos" / "sums", suite / "repos" / "totals")
    text = (held_out / "task.toml").read_text()
    (held_out / "task.toml").write_text(text.replace('"search"', '"holdout"').replace('"sums"', '"totals"'))
    words = [
        "run",
        "--name",
        "priced",
        "--benchmark",
        suite,
        "--model",
        "offline",
        "--sandbox",
        "bubblewrap",
        *PRICES,
    ]
    return dgm.json(*words, "--max-evaluations", 1, "--set", "budget.usd=1")


def test_an_examination_is_bounded_priced_and_paid_once(dgm, priced):
    searched = priced["spend"]["usd"]
    assert 0 < searched < 1
    stopped = dgm("report", "priced", "--holdout", "--max-usd", "0.000001", code=3)
    assert "give it more with --max-usd" in stopped.stderr
    found = dgm.json("report", "priced", "--holdout")
    spend = found["holdout"]["spend"]
    assert found["spend"]["usd"] == searched
    control = found["holdout"]["control"]
    assert spend["seed"]["usd"] == spend["best"]["usd"] > 0
    assert spend["usd"] == pytest.approx(spend["seed"]["usd"] + control["spend"]["usd"])
    assert (control["missing"], control["unit"]) == (0, "usd")
    assert spend["by"][0]["model"] == "offline"
    events = dgm("log", dgm.archive / "priced" / "holdout").stdout
    assert dgm.json("report", "priced", "--holdout")["holdout"] == found["holdout"]
    assert dgm("log", dgm.archive / "priced" / "holdout").stdout == events
    assert dgm.json("status", "priced")["spend"]["left_usd"] == round(1 - searched, 6)
