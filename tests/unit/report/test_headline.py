"""What a report says of the choice, the difference and the power, on verdicts made by hand."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.analysis.summary import corrected_rate_record
from dgm.archive.events import TaskGraded
from dgm.domain import AgentId, Evaluate, Evaluation, TaskId, Usage, Verdict
from dgm.evaluation.exam import Comparison, compare_verdicts
from dgm.report.facts import gather_report
from dgm.report.figures import draw_holdout
from dgm.report.headline import WORDS as WORDS_OF
from dgm.report.headline import ExamFindings, HoldoutAnswer, holdout_record, make_verdict
from dgm.report.opening import opening_lines
from dgm.report.page import render_page
from dgm.report.people import holdout_lines, search_lines
from dgm.show.spans import plain_text
from dgm.show.words import mcnemar_text, p_text
from dgm.stats import mcnemar_power, tasks_needed
from tests.support.runs.paid import PaidRun
from tests.unit.report.test_markup import Texts

pytestmark = pytest.mark.slow

WORDS = {True: Verdict.RESOLVED, False: Verdict.UNRESOLVED}


def twenty(gained: int, lost: int, both: int) -> Comparison:
    """Twenty tasks on which the second agent gains and loses as many as said."""
    kinds = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * both
    kinds += [(False, False)] * (20 - len(kinds))
    return compare_verdicts((f"task-{n:02}", WORDS[one], WORDS[two]) for n, (one, two) in enumerate(kinds))


def findings(pairs: Comparison, missing: int = 0) -> ExamFindings:
    return ExamFindings(pairs, Usage(), {}, Usage(), Usage(), 20, missing)


def text(lines) -> str:
    return "\n".join(map(plain_text, lines))


@pytest.fixture
def searched(tmp_path: Path):
    """A seed and four children, evaluated 10 times each but the last, which was not."""
    made = PaidRun(tmp_path / "searched")
    for agent, resolved in enumerate((3, 4, 7, 2)):
        for task in range(10):
            action = made.start(Evaluate(AgentId(agent), TaskId(f"task-{task}")))
            done = Evaluation(AgentId(agent), TaskId(f"task-{task}"), 0, WORDS[task < resolved], "as graded")
            made.run.append(TaskGraded(action, done))
        made.child(0, calls=0)
    yield made.run
    made.run.close()


def test_the_best_agents_rate_is_corrected_for_the_choice(searched) -> None:
    found = corrected_rate_record(searched, AgentId(2))
    assert (found["agent"], found["evaluated"], found["rate"]) == (2, 4, 0.7)
    assert 0.4 < found["corrected_rate"] < 0.65  # 0.4 is the rate of all together
    said = text(search_lines(searched, AgentId(2)))
    share = f"{found['corrected_rate']:.0%}"
    assert f"best agent's rate: naive 70%, corrected for having been chosen among 4: {share}" in said


def test_nothing_is_corrected_where_there_was_no_choice(searched, tmp_path: Path) -> None:
    assert corrected_rate_record(searched, AgentId(4)) is None
    alone = PaidRun(tmp_path / "alone")
    assert corrected_rate_record(alone.run, AgentId(0)) is None
    alone.run.close()


def test_mid_p_difference_and_power_stand_beside_the_exact_p(searched) -> None:
    said = text(holdout_lines(searched, findings(twenty(4, 1, 6)), AgentId(2)))
    assert "4 gained, 1 lost; exact McNemar p = 0.375 (mid-p 0.219): the best agent is not shown" in said
    assert "difference: +15 points, " in said
    assert (
        "power: 20 tasks show a true gain of 20 points (25% gained, 5% lost) with probability 20%; "
        "for 80% it takes 61 tasks"
    ) in said


def test_the_same_stands_in_the_document() -> None:
    found = holdout_record(findings(twenty(4, 1, 6)))
    assert (found["mcnemar_p"], found["mcnemar_mid_p"]) == (0.375, 0.21875)
    assert found["difference"]["mean"] == 0.15
    low, high = found["difference"]["interval"]
    assert -0.2 < low < 0 < 0.3 < high < 0.5
    assert found["power"] == {
        "gained": 0.25,
        "lost": 0.05,
        "power": round(mcnemar_power(20, 0.25, 0.05), 6),
        "tasks_for_80_percent": tasks_needed(0.25, 0.05),
    }


@pytest.mark.parametrize(("gained", "lost"), [(20, 0), (0, 20), (0, 0)])
def test_tasks_that_all_went_alike_give_no_interval(searched, gained: int, lost: int) -> None:
    found = findings(twenty(gained, lost, 0))
    assert holdout_record(found)["difference"] == {"mean": (gained - lost) / 20, "interval": None}
    assert "difference" not in text(holdout_lines(searched, found, AgentId(2)))


def test_many_losses_leave_room_for_the_gain() -> None:
    power = holdout_record(findings(twenty(2, 18, 0)))["power"]
    assert (power["gained"], power["lost"]) == (0.6, 0.4)


def test_without_tasks_nothing_is_said_of_power_or_difference(searched) -> None:
    found = findings(compare_verdicts([]))
    record = holdout_record(found)
    assert (record["difference"], record["power"], record["mcnemar_mid_p"]) == (None, None, 1.0)
    assert "power" not in text(holdout_lines(searched, found, AgentId(2)))


@pytest.mark.parametrize(
    ("gained", "lost", "answer", "words"),
    [
        (6, 0, HoldoutAnswer.BETTER, "it is better than the seed"),
        (5, 0, HoldoutAnswer.NOT_SHOWN, "it is not shown to be better than the seed"),
        (0, 0, HoldoutAnswer.NOT_SHOWN, "it is not shown to be better than the seed"),
        (0, 5, HoldoutAnswer.NOT_SHOWN, "it is not shown to be better than the seed"),
        (0, 6, HoldoutAnswer.WORSE_SHOWN, "it is worse than the seed"),
    ],
)
def test_the_headline_says_no_more_than_the_test_shows(gained: int, lost: int, answer, words: str) -> None:
    pairs = twenty(gained, lost, 4)
    found = make_verdict(findings(pairs), AgentId(2), "run")
    assert found.answer is answer
    assert words in found.sentence
    counts = f"the best agent resolves {4 + gained} and the seed {4 + lost}"
    assert counts in found.sentence
    assert holdout_record(findings(pairs))["shown_better"] == (answer is HoldoutAnswer.BETTER)


@pytest.mark.starts_processes
@pytest.mark.parametrize(("gained", "lost"), [(6, 0), (4, 1), (0, 6)])
def test_terminal_page_and_document_say_the_same(searched, gained: int, lost: int) -> None:
    found = findings(twenty(gained, lost, 4))
    words = WORDS_OF[make_verdict(found, AgentId(2), "run").answer]
    assert f"the best agent is {words}" in text(holdout_lines(searched, found, AgentId(2)))
    report = gather_report(searched, AgentId(2), found, [])
    assert f"it is {words}" in Texts(render_page(report).decode()).text
    assert report.verdict.answer.value == words.removesuffix(" than the seed")


@pytest.mark.starts_processes
@pytest.mark.parametrize(("gained", "lost"), [(6, 0), (0, 6)])
def test_nothing_is_shown_before_the_last_verdict(searched, gained: int, lost: int) -> None:
    found = findings(twenty(gained, lost, 4), missing=1)
    assert make_verdict(found, AgentId(2), "run").answer is HoldoutAnswer.NOT_EXAMINED
    record = holdout_record(found)
    assert not record["shown_better"]
    assert {record[name] for name in ("mcnemar_p", "mcnemar_mid_p", "difference", "power", "control")} == {
        None
    }
    report = gather_report(searched, AgentId(2), found, [])
    assert draw_holdout(report) is None
    shown = text(holdout_lines(searched, found, AgentId(2))), Texts(render_page(report).decode()).text
    for said in shown:
        assert "Nothing is shown yet: of 20 holdout tasks, 20 have a verdict on both" in said
        assert not re.search(
            "McNemar|[Dd]ifference:|[Pp]ower:|than the seed [(]", said.partition("Progress")[0]
        )
        assert f"{4 + gained}/20" in said


@pytest.mark.starts_processes
def test_agents_that_were_examined_before_are_counted(searched) -> None:
    once, twice = findings(twenty(6, 0, 4)), replace(findings(twenty(6, 0, 4)), examined=2)
    for found, count in ((once, 0), (twice, 1)):
        page_text = Texts(render_page(gather_report(searched, AgentId(2), found, [])).decode()).text
        for said in (text(holdout_lines(searched, found, AgentId(2))), page_text):
            assert (
                said.count("2 agents of this run have been examined on these tasks; p is not corrected")
                == count
            )
    assert holdout_record(twice)["examined"] == 2


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.375, "p = 0.375"),
        (0.0496, "p = 0.0496"),
        (0.04996, "p = 0.04996"),
        (0.05, "p = 0.050"),
        (0.0625, "p = 0.062"),
        (0.00042, "p = 0.00042"),
        (2e-6, "p < 0.00001"),
    ],
)
def test_a_p_is_never_rounded_to_nothing_nor_across_the_level(p: float, said: str) -> None:
    assert p_text(p) == said
    assert mcnemar_text(p, p / 2).startswith(f"exact McNemar {said} (mid-p ")
    assert "0.000 " not in mcnemar_text(p, p)
    assert "0.000)" not in mcnemar_text(p, p)


def test_the_document_keeps_a_small_p() -> None:
    assert 0 < holdout_record(findings(twenty(20, 0, 0)))["mcnemar_p"] < 1e-5


def test_without_an_examination_nothing_is_shown() -> None:
    found = make_verdict(None, AgentId(2), "my-run")
    assert found.answer is HoldoutAnswer.NOT_EXAMINED
    assert "dgm report my-run --holdout" in found.sentence


def test_a_search_that_recommends_its_seed_says_so() -> None:
    found = make_verdict(findings(twenty(0, 0, 4)), AgentId(0), "run")
    assert found.answer is HoldoutAnswer.NOT_SHOWN
    assert found.sentence.startswith("The search recommends the seed itself")


def test_a_report_begins_with_the_answer_the_difference_and_the_cost(searched) -> None:
    lines = list(map(plain_text, opening_lines(searched, findings(twenty(14, 1, 3)), AgentId(2))))
    assert lines[0].startswith("better?       yes: 17 of 20 holdout tasks, the seed 4 (McNemar p = 0.00")
    assert lines[1].startswith("by how much?  +65 points on the holdout tasks, +")
    assert lines[1].endswith(" with 95 % confidence")
    assert lines[2].startswith("at what cost? 0.0000 USD, 0 tokens, ")
    assert lines[3:] == [""]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("gained", "lost", "missing", "said"),
    [
        (4, 1, 0, "not shown: 10 of 20 holdout tasks, the seed 7"),
        (0, 9, 0, "no, it is worse: 6 of 20"),
        (9, 0, 3, "not known: 20 of 20 holdout tasks done (dgm report searched --holdout goes on)"),
    ],
)
def test_the_answer_says_no_more_than_the_test_shows(searched, gained, lost, missing, said: str) -> None:
    found = findings(twenty(gained, lost, 6), missing)
    assert said in plain_text(opening_lines(searched, found, AgentId(2))[0])


def test_before_an_examination_the_difference_is_that_of_the_search_and_said_to_flatter(searched) -> None:
    better, much, *_ = map(plain_text, opening_lines(searched, None, AgentId(2)))
    assert (
        better == "better?       not known: no holdout task was tried (dgm report searched --holdout does it)"
    )
    assert much == "by how much?  +40 points on the search tasks, which flatter: 40–89% against 11–60%"


def test_the_seed_is_not_compared_with_itself(searched) -> None:
    same = replace(findings(twenty(0, 0, 4)), itself=True)
    said = text(
        [
            *opening_lines(searched, same, AgentId(0)),
            *search_lines(searched, AgentId(0)),
            *holdout_lines(searched, same, AgentId(0)),
        ]
    )
    assert (
        "by nothing: the best agent is the seed, which resolves 3/10 30% 11–60% of the search tasks" in said
    )
    for comparison in ("best  agent", "gained", "difference", "McNemar", "power", "ontrol", "corrected"):
        assert comparison not in said
    document = holdout_record(same)
    assert document["seed"]["n"] == 20
    assert document["mcnemar_p"] is document["difference"] is document["power"] is None


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("words", "absent"),
    [(["--help"], "numpy"), (["run", "--help"], "numpy"), (["report", "--help"], "numpy")],
)
def test_help_loads_no_numbers(words: list[str], absent: str) -> None:
    assert absent not in modules_after(words)


@pytest.mark.starts_processes
def test_status_loads_no_tests(searched) -> None:
    loaded = modules_after(["status", str(searched.folder)])
    assert not {"scipy", "requests", "networkx", "docker", "git"} & loaded


def modules_after(words: list[str]) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import sys\nfrom dgm.cli.main import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    assert not end.code\nprint('\\n' + ' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", code, *words]
    return set(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    )
