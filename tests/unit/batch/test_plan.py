"""The runs that a batch stands for, and what is wrong with one."""

import pytest

from dgm.batch.plan import check_existing, parse_seeds, plan_runs
from dgm.config import resolve
from dgm.errors import UserError
from tests.support.runs.made import make_run

SHARED = (None, {"model": "offline", "budget.evaluations": 8}, {})


@pytest.mark.parametrize(
    "vary",
    [
        {"policy.name": ["lineage", "hgm"], "workers": [1, 2]},
        ["policy.name=lineage,hgm", "workers=1,2"],
        ['policy.name="lineage", "hgm"', "workers = 1, 2"],
    ],
)
def test_every_combination_runs_with_each_seed(vary):
    runs = plan_runs("try", SHARED, "1:3", vary)
    assert [run.name for run in runs[:4]] == [
        "try-lineage-workers-1-1",
        "try-lineage-workers-2-1",
        "try-hgm-workers-1-1",
        "try-hgm-workers-2-1",
    ]
    chosen = [(run.settings.seed, run.settings.policy.name, run.settings.workers) for run in runs[4:]]
    assert chosen == [(2, "lineage", 1), (2, "lineage", 2), (2, "hgm", 1), (2, "hgm", 2)]


def test_lists_are_values():
    runs = plan_runs("x", SHARED, None, ['benchmarks.polyglot.languages=["go"],["go","rust"]'])
    assert [run.settings.benchmarks.polyglot.languages for run in runs] == [("go",), ("go", "rust")]
    assert [run.name for run in runs] == ["x-languages-go-0", "x-languages-go-rust-0"]


@pytest.mark.parametrize(
    ("seeds", "numbers"), [("1:4", [1, 2, 3]), ("7,3", [7, 3]), ("5", [5]), ([2, 1], [2, 1])]
)
def test_seeds_are_a_range_or_a_list(seeds, numbers):
    assert list(parse_seeds(seeds)) == numbers


@pytest.mark.parametrize(
    ("seeds", "vary", "argument", "problem"),
    [
        ("4:1", [], "seeds", "expected different numbers"),
        ([1, 1], [], "seeds", "expected different numbers"),
        ([-1], [], "seeds", "expected different numbers"),
        ("x", [], "seeds", "expected 1:4"),
        (None, ["workers"], "vary", "expected KEY=A,B"),
        (None, ["seed=1,2"], "vary", "seeds are varied by seeds"),
        (None, {"workers": 3}, "vary", "expected a list"),
        (None, {"workers": []}, "vary", "expected a list"),
        (None, ["policy.name=hgm,hgm"], "vary", "two runs would be named"),
        (None, ["policy.nme=hgm,uct"], "policy.nme", "unknown setting 'policy.nme' (did you mean"),
        (None, ["workers=1,x"], "workers", "'x': input should be a valid integer"),
        (None, ["policy.name=hgmm"], "", "unknown name 'hgmm'"),
        ("0:2000", [], "vary", "more than 1000 runs"),
    ],
)
def test_what_is_wrong_names_its_argument(seeds, vary, argument, problem):
    with pytest.raises(UserError) as error:
        plan_runs("try", SHARED, seeds, vary)
    assert error.value.argument == argument
    assert problem in error.value.problem


def test_the_command_of_a_run_gives_the_same_settings():
    settings = {
        "model": "offline",
        "models.improve": [{"model": "offline", "weight": 2}],
        'models.prices."openai/gpt-x.1"': {"input": 1.5, "output": 3},
        "operator": "self-edit+diagnose",
        "gates.approve": True,
    }
    (run,) = plan_runs("try", (None, settings, {}), [4], {})
    words = run.command()
    assert words[:3] == ["run", "--name", "try-4"]
    assert set(words[3::2]) == {"--set"}
    assert resolve(None, words[4::2], {}) == run.settings


def test_the_words_of_a_run_name_its_receivers():
    settings = {"sinks.to": ["tensorboard:tb"], "notify.to": ["env:WHERE"], "notify.events": ["end"]}
    (run,) = plan_runs("try", (None, settings, {}), [4], {})
    assert "env:WHERE" not in " ".join(run.command())
    assert resolve(None, run.receiver_words()[1::2], {}).notify == run.settings.notify
    assert resolve(None, run.receiver_words()[1::2], {}).sinks == run.settings.sinks


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"notify.to": ["ntfy://topic"]}, "notify"),
        ({"sinks.to": ["mlflow:http://me:key@host"]}, "sink"),
        ({"sinks.to": ["otlp:http://host/v1?key=token"]}, "sink"),
    ],
)
def test_an_address_that_may_hold_a_token_is_no_word(settings, argument):
    (run,) = plan_runs("try", (None, settings, {}), [4], {})
    with pytest.raises(UserError, match="env:NAME") as error:
        run.receiver_words()
    assert error.value.argument == argument


@pytest.mark.starts_processes
def test_a_run_that_was_begun_with_other_settings_is_refused(tmp_path):
    (before,) = plan_runs("try", SHARED, [1], {})
    (changed,) = plan_runs("try", SHARED, [1], {"budget.evaluations": [9]})
    folder = make_run(tmp_path / before.name, before.settings)
    check_existing(before, folder)
    check_existing(before, tmp_path / "absent")
    with pytest.raises(UserError, match=r"budget\.evaluations is 9, but run .* was begun with 8"):
        check_existing(changed, folder)
    with pytest.raises(UserError, match="exists and is no run"):
        check_existing(before, tmp_path)
