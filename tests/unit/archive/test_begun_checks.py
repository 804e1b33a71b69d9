"""A check of a model that a kill cuts off, before a session begins, is counted by the next session."""

import pytest

from dgm.archive.begun_checks import begin_checks, end_checks, find_cut_checks, read_earlier_checks
from dgm.archive.run import Run
from dgm.archive.spend import CHECK_ROLE
from dgm.config import Settings
from dgm.domain import Usage
from dgm.protocols import Checked
from dgm.search.model_checks import note_checks, worst_of_checks
from dgm.views.run import view_cut_calls
from tests.support.runs.paid import PaidRun

pytestmark = pytest.mark.slow

NAME = "openai-compatible/m"
PRICED = {"models": {"prices": {NAME: {"input": 1, "output": 10}}}, "model": NAME}
SETTINGS = Settings.model_validate(PRICED)
MOST = Usage(1, 4000, 16000, pytest.approx(0.164))


@pytest.fixture
def paid(tmp_path):
    return PaidRun(tmp_path / "r")


def checked():
    return [Checked(NAME, {}, (), Usage(1, 30, 4))]


def test_check_that_ended_leaves_nothing_behind(paid):
    begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    note_checks(paid.run, SETTINGS, checked())
    assert find_cut_checks(paid.run.folder) == []
    assert paid.run.tree.spend_by[CHECK_ROLE, NAME] == Usage(1, 30, 4, 70e-6)


def test_check_that_was_cut_off_is_counted_once_at_its_worst_case(paid):
    for _ in range(2):
        begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    assert find_cut_checks(paid.run.folder) == [(NAME, MOST)] * 2
    assert read_earlier_checks(paid.run.folder) == [(NAME, MOST)]
    for _ in range(2):
        note_checks(paid.run, SETTINGS, checked())
    spent = paid.run.tree.spend_by[CHECK_ROLE, NAME]
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (3, 4060, 16008)


def test_check_that_was_refused_keeps_what_was_cut_off_before(paid):
    begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    end_checks(paid.run.folder, counted=False)
    assert find_cut_checks(paid.run.folder) == [(NAME, MOST)]


def test_status_names_it(paid):
    begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    assert view_cut_calls(paid.run) == []
    paid.run.close()
    with Run.open(paid.run.folder) as dead:
        (call,) = view_cut_calls(dead)
    assert (call.action, call.model, call.in_spend, call.tokens) == (0, NAME, False, 20_000)


def test_worst_case_of_a_check_has_the_limit_of_a_reply():
    priced = {NAME: {"input": 1, "output": 10, "max_output": 20_000}}
    more = Settings.model_validate({"models": {"prices": priced}, "model": NAME})
    less = more.model_copy(update={"limits": more.limits.model_copy(update={"output_tokens": 700})})
    assert [worst_of_checks(one)[NAME].output_tokens for one in (more, less)] == [20_000, 700]
