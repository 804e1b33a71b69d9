"""Settings: where they come from, which wins, and what is said of wrong ones."""

import pytest

from dgm.config import ProviderSettings, Settings, read_frozen, resolve
from dgm.errors import UserError


def test_later_sources_win(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('workers = 3\nseed = 5\n[policy]\nname = "random"\n')
    settings = resolve(file, ["seed=6", "policy.alpha=0.5"], {"workers": 4, "model": None})
    assert (settings.workers, settings.seed, settings.policy.name, settings.policy.alpha) == (
        4,
        6,
        "random",
        0.5,
    )
    assert settings.model == Settings().model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workres = 2", "small.toml: unknown setting 'workres' (did you mean 'workers'?)"),
        ("[policy]\nalhpa = 0.5", "unknown setting 'policy.alhpa' (did you mean 'policy.alpha'?)"),
        ("workers = 0", "workers = 0: input should be greater than or equal to 1"),
        ('[scale]\nnode_engine = "none"', "scale.node_engine = 'none'"),
        ("workers = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path, text, message):
    file = tmp_path / "small.toml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        resolve(file, [], {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize("assignments", [["workers"], ["policy.name=hgm", "policy.name.x=1"], ["budget=3"]])
def test_a_wrong_assignment_is_refused(assignments):
    with pytest.raises(UserError):
        resolve(None, assignments, {})


@pytest.mark.parametrize("limit", ["usd=1", "tokens=1000", "hours=1"])
def test_a_cost_of_expansions_wants_a_budget_of_evaluations(limit):
    cost = "budget.expansion_cost=2"
    with pytest.raises(UserError, match="there is no budget of evaluations") as error:
        resolve(None, [cost, f"budget.{limit}"], {})
    assert error.value.argument == "budget.expansion_cost"
    assert resolve(None, [cost, f"budget.{limit}", "budget.evaluations=10"], {}).budget.expansion_cost == 2


@pytest.mark.parametrize("weight", ["1e308", "2e9", "inf", "0"])
def test_a_weight_of_an_operator_is_bounded(weight):
    both = ["operator=self-edit+diagnose", "operators.weights.diagnose=1e9"]
    assert resolve(None, both, {}).operators.weights == {"diagnose": 1e9}
    with pytest.raises(UserError, match=r"operators\.weights\.diagnose"):
        resolve(None, [*both, f"operators.weights.diagnose={weight}"], {})


@pytest.mark.parametrize(
    ("settings", "arguments", "argument", "problem"),
    [
        (["operators.promises=true"], {}, "operators.promises", "true: only the bandit heeds it"),
        (["gates.novelty_threshold=0.5"], {}, "gates.novelty_threshold", "0.5: nothing is compared"),
        ({"limits": {"cals": 3}}, {}, "limits.cals", "unknown setting 'limits.cals' (did you mean"),
        (["budget.usd=-3"], {}, "budget.usd", "-3: input should be greater than 0"),
        (["seed_agent="], {}, "", "seed_agent = '': name an agent, a folder or"),
        (["seed_agent=[]"], {}, "", "seed_agent = []: name an agent, a folder or"),
        ([], {"seed_agent": ["plain", ""]}, "agent", "['plain', '']: name an agent"),
        ([], {"budget.usd": -3}, "max_usd", "-3: input should be greater than 0"),
        (["operator=a+"], {}, "", "operator = 'a+': an operator without a name"),
    ],
)
def test_an_error_names_the_parameter_or_the_setting(settings, arguments, argument, problem):
    with pytest.raises(UserError) as error:
        resolve(None, settings, arguments)
    assert error.value.argument == argument
    assert error.value.problem.startswith(problem)


FORMER = """
[models.compatible]
base_url = "http://a/v1"
waiting = 9
[models.openai.answer_schema]
"gpt.x" = true
[limits]
log_bytes = 5
"""


def test_a_region_leads_to_no_other_host():
    with pytest.raises(UserError, match=r"providers\.vertex\.region"):
        resolve(None, ["providers.vertex.region=other.example/x"], {})


def test_names_of_earlier_versions_are_taken_with_one_message(tmp_path, caplog):
    file = tmp_path / "old.toml"
    file.write_text(FORMER)
    settings = resolve(file, ["models.compatible.tries=3"], {})
    assert settings.providers == {
        "openai-compatible": ProviderSettings(base_url="http://a/v1", tries=3),
        "openai": ProviderSettings(answer_schema={"gpt.x": True}),
    }
    (record,) = caplog.records
    told = record.getMessage().split("; ")
    assert f"{file}: models.compatible.base_url is now providers.openai-compatible.base_url" in told
    assert f"{file}: models.compatible.waiting is gone, and ignored" in told
    assert f"{file}: limits.log_bytes is gone, and ignored" in told
    assert "settings: models.compatible.tries is now providers.openai-compatible.tries" in told
    assert len(told) == 5


def test_a_setting_that_is_gone_is_dropped_from_the_frozen_settings_of_an_older_run():
    record = {
        "vetting": {},
        "scale": {"speculate": 3.0, "lease_s": 9.0, "wait_s": 9.0},
        "models": {
            "solve": "a",
            "bedrock": {"profile": "p", "region": "r"},
            "azure": {"tries": 8, "api": None},
        },
        "providers": {"bedrock": {"region": "later"}},
    }
    now = read_frozen(record, "run.json")
    assert (now.scale.wait_s, now.models.solve) == (9.0, "a")
    assert now.providers["bedrock"] == ProviderSettings(region="later")
    assert "azure" not in now.providers
    assert record["scale"]["speculate"] == 3.0


def test_a_run_that_is_older_than_vetting_keeps_its_behaviour():
    settings = read_frozen({"evidence": {"failures": 3, "layout": 1}}, "run.json")
    assert (settings.vetting.probes, settings.evidence.failures) == (0, 3)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["providers.opnai.tries=3"], "'opnai' is no provider (did you mean 'openai'?"),
        (["providers.mine.kind=openrouter"], "providers.mine.kind: 'openrouter': "),
        (["providers.openai.kind=azure"], "'openai' is its own kind"),
        (["providers.openai.tires=3"], "(did you mean 'providers.openai.tries'?)"),
        (['models.requests."a/b".dorp=3'], "(did you mean 'models.requests.a/b.drop'?)"),
    ],
)
def test_a_provider_that_is_none_is_refused(assignments, message):
    with pytest.raises(UserError) as error:
        resolve(None, assignments, {})
    assert message in str(error.value)
