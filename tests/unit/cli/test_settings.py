"""``dgm settings``: all that can be set, from the records themselves."""

import json

import pytest
from click.testing import CliRunner

from dgm.cli.settings import settings
from dgm.config import Settings, resolve
from dgm.config.listing import NAME, list_settings
from dgm.errors import UserError
from dgm.models.providers import all_variables

pytestmark = pytest.mark.slow


def asked(*words):
    done = CliRunner().invoke(settings, words, catch_exceptions=False)
    return done.output


def test_every_setting_can_be_set_and_means_something():
    rows = list_settings()
    assert len({row.name for row in rows}) == len(rows) > 100
    for row in rows:
        assert row.meaning, row.name
        assert row.type, row.name
    plain = [row for row in rows if NAME not in row.name and row.default is not None]
    given = {row.name: row.default for row in plain if row.type != "table"}
    assert resolve(None, [], given) == Settings()


@pytest.mark.parametrize(
    ("name", "type_", "default", "choices"),
    [
        ("workers", "whole number from 1 to 4096", 2, ()),
        ("policy.alpha", "number above 0 below 1", 0.6, ()),
        ("scale.node_engine", "auto | docker | bubblewrap", "auto", ("auto", "docker", "bubblewrap")),
        ("gates.flips", "true | false", False, ("true", "false")),
        ("gates.on_timeout", "reject | accept", None, ("reject", "accept")),
        ("evidence.layout", "1 | 2", 2, ("1", "2")),
        ("limits.usd", "number above 0", None, ()),
        ("models.aliases", "table", {}, ()),
        (f"models.prices.{NAME}.input", "number from 0", None, ()),
    ],
)
def test_types_and_defaults_are_those_of_the_record(name, type_, default, choices):
    row = next(row for row in list_settings() if row.name == name)
    assert (row.type, row.default, row.choices) == (type_, default, choices)
    assert row.required == name.endswith(".input")


def test_a_part_of_a_name_finds_its_settings():
    said = asked("limits")
    assert said.startswith(
        "[limits]  Bounds on a single action.\n  limits.calls  whole number from 1, default 80\n"
    )
    assert "policy." not in said
    found = json.loads(asked("limits.*_usd", "--json"))
    assert [row["name"] for row in found["settings"]] == ["limits.child_usd"]
    assert found["variables"] == []


def test_variables_stand_under_a_heading_of_their_own():
    said = asked()
    below = said[said.index("environment variables") :]
    assert all(f"  {variable.name}\n" in below for variable in all_variables())


def test_meanings_are_searched_where_no_name_fits():
    assert "gates.novelty  off" in asked("near copy of another")


def test_what_nothing_matches_is_said_with_the_nearest_names():
    with pytest.raises(UserError, match=r"no setting matches 'limts\.calls' \(nearest: limits\.calls, "):
        asked("limts.calls")
    with pytest.raises(UserError, match=r"no setting matches 'workrs' \(nearest: workers"):
        asked("workrs")
