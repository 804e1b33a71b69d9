"""What an examination on held-out tasks costs, and that none of it is paid twice."""

import shutil

import pytest

from tests.support.suite_on_disk import TASK, make_suite

pytestmark = pytest.mark.sandbox

PRICES = ("--set", "models.prices.offline.input=2", "--set", "models.prices.offline.output=8")


@pytest.fixture(scope="module")
def priced(dgm, tmp_path_factory):
    """A finished search whose offline model has a price, on a suite with one task to search and one to report on.

    Nobody can resolve the second, so that the control has something to try again.
    """
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    suite = make_suite(tmp_path_factory.mktemp("suite"))
    held_out = suite / "tasks" / "totals-doubling-triples"
    shutil.copytree(suite / "tasks" / TASK, held_out)
    shutil.copytree(suite / "repos" / "sums", suite / "repos" / "totals")
    text = (held_out / "task.toml").read_text()
    (held_out / "task.toml").write_text(text.replace('"search"', '"holdout"').replace('"sums"', '"totals"'))
    hidden = held_out / "tests" / "test_hidden_double.py"
    hidden.write_text(hidden.read_text().replace("double(5), 10", "double(5), 11"))
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
    return dgm.json(*words, "--max-evaluations", 3, "--set", "budget.usd=1")


def test_an_examination_is_bounded_priced_and_paid_once(dgm, priced):
    searched = priced["spend"]["usd"]
    assert 0 < searched < 1
    stopped = dgm("report", "priced", "--holdout", "--no-control", "--max-usd", "0.000001", code=3)
    assert "give it more with --max-usd" in stopped.stderr
    assert "on the search tasks" in stopped.stdout
    words = ("report", "priced", "--holdout", "--control-attempts", 2)
    assert dgm.json("report", "priced", "--holdout", "--no-control")["holdout"]["control"] is None
    found = dgm.json(*words)
    spend = found["holdout"]["spend"]
    assert found["spend"]["usd"] == searched
    control = found["holdout"]["control"]
    pairs = [spend["seed"]["usd"], *([spend["best"]["usd"]] if found["best"]["agent"] else [])]
    assert min(pairs) > 0
    assert spend["usd"] == pytest.approx(sum(pairs) + control["spend"]["usd"])
    assert (control["missing"], control["unit"], control["attempts"]) == (0, "usd", 2)
    assert control["affordable"] > 1
    assert control["took"] == control["spend"]["usd"] > 0
    assert spend["by"][0]["model"] == "offline"
    events = dgm("log", dgm.archive / "priced" / "holdout").stdout
    assert dgm.json(*words)["holdout"] == found["holdout"]
    assert dgm("log", dgm.archive / "priced" / "holdout").stdout == events
    assert dgm.json("status", "priced")["spend"]["left_usd"] == round(1 - searched, 6)
