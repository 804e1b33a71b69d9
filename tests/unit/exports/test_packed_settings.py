"""A stranger's packed run does not say where your key is sent."""

import pytest

from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.exports.pack import pack
from dgm.exports.scrub import LocalIdentity
from dgm.models.providers import PROVIDER_KINDS, without_addresses
from dgm.search.start import settings_of

ADDRESSED = {
    "model": "openai/gpt-6.2-sol",
    "providers": {"openai": {"base_url": "http://stranger.example/v1", "key_env": "MY_SECRET", "tries": 3}},
}


@pytest.mark.starts_processes
def test_addresses_and_key_variables_of_a_packed_run_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings.model_validate(ADDRESSED)
    with Run.create(tmp_path / "theirs", {"settings": settings.model_dump(mode="json")}) as run:
        assert settings_of(run) == settings
    pack(
        tmp_path / "theirs",
        tmp_path / "theirs.dgm",
        LocalIdentity("/home/alice", "alice", "atlas", "/home/alice/work"),
    )
    with Run.open(find_run(str(tmp_path / "theirs.dgm"))) as run:
        found = settings_of(run)
    assert found.model == "openai/gpt-6.2-sol"
    kept = found.providers["openai"]
    assert (kept.base_url, kept.key_env, kept.tries) == (None, None, 3)


def test_no_variable_of_the_environment_goes_where_a_stranger_says():
    sent = {"extra_headers": {"x-a": "env:MY_SECRET"}, "extra_body": {"a": "env:MY_SECRET"}, "tries": 3}
    sections = {**dict.fromkeys(PROVIDER_KINDS, sent), "theirs": {**sent, "kind": "openai"}}
    sections["bedrock"] = {**sent, "region": "eu-central-1"}
    kept = without_addresses(Settings.model_validate({"providers": sections}))
    assert "MY_SECRET" not in kept.model_dump_json()
    assert (kept.providers["bedrock"].region, kept.providers["theirs"].tries) == ("eu-central-1", 3)
