"""What settings name of addresses, key variables and prices, and what of it needs this user's yes."""

import pytest

from dgm.consents import ConsentNeeded
from dgm.models.reach import file_models, list_reach, list_unagreed, require_own_file
from tests.support.models.sections import make_settings as models

THEIRS = {"compatible": {"base_url": "http://theirs/v1", "key_env": "AWS_SECRET_ACCESS_KEY"}}


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def words(found):
    return [one.words for one in found]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (THEIRS, "openai-compatible: base_url = http://theirs/v1, key_env = AWS_SECRET_ACCESS_KEY"),
        ({"openai": {"key_env": "HOME"}}, "openai: key_env = HOME"),
        ({"anthropic": {"extra_headers": {"x": "env:HOME"}}}, 'anthropic: extra_headers = {"x": "env:HOME"}'),
        ({"openai": {"extra_body": {"x": "env:HOME"}}}, 'openai: extra_body = {"x": "env:HOME"}'),
        ({"azure": {"base_url": "https://a"}}, "azure: base_url = https://a"),
        ({"bedrock": {"region": "r"}}, "bedrock: region = r"),
        ({"vertex": {"project": "p", "region": "r"}}, "vertex: region = r, project = p"),
        (
            {"requests": {"openai/x": {"drop": ["seed"], "set": {"service_tier": "priority"}}}},
            "requests of openai/x: service_tier = priority",
        ),
        ({"prices": {"openai/x": {"input": 0, "output": 0}}}, "price of openai/x: input = 0.0, output = 0.0"),
    ],
)
def test_what_a_run_names_of_its_own_is_said(own, said):
    assert words(list_unagreed(models(**own), models(**own))) == [said]
    for subject in list_reach(models(**own)):
        subject.agree()
    assert list_unagreed(models(**own), models(**own)) == []


def test_a_yes_is_to_exactly_what_was_shown():
    for subject in list_reach(models(**THEIRS)):
        subject.agree()
    other = {"compatible": {**THEIRS["compatible"], "key_env": "OPENAI_API_KEY"}}
    assert len(list_unagreed(models(**other), models(**other))) == 1


def test_what_the_user_names_instead_needs_no_yes():
    mine = {"compatible": {"base_url": "http://mine/v1", "key_env": "MY_KEY"}}
    assert list_unagreed(models(**mine), models(**THEIRS)) == []
    assert list_unagreed(models(), models(**THEIRS)) == []
    priced = {"prices": {"offline": {"input": 2, "output": 8}}}
    assert list_unagreed(models(**priced), models()) == []
    assert list_unagreed(models(**priced), models(prices={"offline": {"input": 0, "output": 0}})) == []


ADDRESS = "base_url = 'http://theirs/v1'\n"


@pytest.mark.parametrize(
    ("lines", "asks"),
    [
        (f"[providers.openai-compatible]\n{ADDRESS}key_env = 'SECRET'\n", True),
        (f"[providers.openai]\n{ADDRESS}", True),
        (f"[providers.anthropic]\n{ADDRESS}extra_headers = {{x = 'env:SECRET'}}\n", True),
        (f"[providers.anthropic]\n{ADDRESS}[providers.anthropic.extra_body.x]\ny = ['env:SECRET']\n", True),
        (f"[providers.vertex]\n{ADDRESS}", True),
        (f"[providers.openai-compatible]\n{ADDRESS}extra_headers = {{x = 'env:SECRET'}}\n", True),
        (f"[providers.openai-compatible]\n{ADDRESS}extra_headers = {{x = 'env'}}\n", False),
        (f"[providers.openai-compatible]\n{ADDRESS}", False),
        ("[providers.openai-compatible]\nkey_env = 'SECRET'\n", False),
        ("[models.prices.'openai/x']\ninput = 1\noutput = 1\n", False),
        ("", False),
    ],
)
def test_a_file_is_asked_about_where_it_sends_a_key_to_its_address(tmp_path, monkeypatch, lines, asks):
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)
    file = tmp_path / "theirs.toml"
    file.write_text(lines)
    theirs = file_models(file)
    if not asks:
        require_own_file(file, theirs, theirs)
        return
    with pytest.raises(ConsentNeeded) as needed:
        require_own_file(file, theirs, theirs)
    for subject in needed.value.subjects:
        subject.agree()
    require_own_file(file, theirs, theirs)


@pytest.mark.parametrize("half", [{"base_url": "http://mine/v1"}, {"key_env": "MY_KEY"}])
def test_half_of_theirs_still_needs_one(half):
    mixed = {"compatible": {**THEIRS["compatible"], **half}}
    assert len(list_unagreed(models(**mixed), models(**THEIRS))) == 1
