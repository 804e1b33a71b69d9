"""Several models for one role: how they are set, opened and drawn."""

from collections import Counter

import pytest

from dgm.config import Settings, WeightedModel, resolve
from dgm.domain import ActionId
from dgm.errors import UserError
from dgm.models.choose import Drawing, all_names, drawing_of, names_by_role, open_models

TWO = Drawing(7, {"improve": [WeightedModel(model="a", weight=2.0), WeightedModel(model="b", weight=1.0)]})


def of(value):
    return resolve(None, [f"models.improve={value}"], {"model": "offline"})


def test_a_draw_follows_from_the_seed_and_the_action_alone():
    drawn = [TWO.model_for(ActionId(action), "improve") for action in range(1, 13)]
    assert drawn == [TWO.model_for(ActionId(action), "improve") for action in range(1, 13)]
    assert drawn != [
        Drawing(8, TWO.choices).model_for(ActionId(action), "improve") for action in range(1, 13)
    ]
    # Recorded runs depend on it.
    assert "".join(drawn) == "bbaaabaaabaa"


def test_models_are_drawn_in_proportion_to_their_weights():
    counts = Counter(TWO.model_for(ActionId(action), "improve") for action in range(3_000))
    # Of 3,000 draws at 2/3 the standard deviation is 26; measured on seed 7.
    assert abs(counts["a"] - 2_000) < 130
    assert counts["a"] + counts["b"] == 3_000


@pytest.mark.parametrize(
    "value",
    [
        '["offline", "recorded"]',
        '[{model = "offline"}, {model = "recorded", weight = 1}]',
        '{"offline" = 1, "recorded" = 1.0}',
    ],
)
def test_several_models_are_set_in_three_ways(value):
    settings = of(value)
    drawing = drawing_of(settings)
    assert drawing.choices == {"improve": (WeightedModel(model="offline"), WeightedModel(model="recorded"))}
    assert Settings.model_validate(settings.model_dump(mode="json")) == settings
    assert all_names(settings) == ("offline", "recorded")
    assert names_by_role(settings)["improve"] == "offline"


def test_every_model_is_opened_once_and_there_under_the_key_that_is_drawn():
    settings = of('["recorded", "offline"]')
    models = open_models(settings)
    assert models["solve"] is models["offline"]
    drawing = drawing_of(settings)
    names = {models[drawing.model_for(ActionId(action), "improve")].name for action in range(20)}
    assert names == {"recorded", "offline"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[]", "should have at least 1 item"),
        ("{}", "should have at least 1 item"),
        ("3", "models.improve.list: 3"),
        ('["a", "a"]', "'a' is named twice"),
        ('["a", 3]', "models.improve.list.1: 3"),
        ('[{model = "a", wait = 3}]', "unknown setting 'models.improve.list.0.wait'"),
        ("[{weight = 3}]", "models.improve.list.0.model"),
        ("{a = 0}", "models.improve.list.0.weight: 0: "),
        ("{a = inf}", "models.improve.list.0.weight: inf: "),
    ],
)
def test_what_names_no_models_is_one_line(value, said):
    with pytest.raises(UserError) as caught:
        of(value)
    assert said in str(caught.value)
    assert str(caught.value).startswith("models.improve.list")
    assert "\n" not in str(caught.value)
