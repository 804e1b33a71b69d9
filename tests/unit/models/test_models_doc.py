"""The examples of ``docs/models.md``: its settings are settings, its commands name models that exist and are priced."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from dgm.config import Settings, resolve
from dgm.models.choose import BUILTIN, names_by_role
from dgm.models.pricing import Prices
from dgm.models.providers import provider_of

TEXT = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = [body for body in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL) if "[project." not in body]
RUNS = [
    line.partition("#")[0]
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("dgm run ")
]


def prices(settings):
    return Prices.load(settings)


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_of_the_examples_are_accepted(block, tmp_path):
    file = tmp_path / "example.toml"
    file.write_text(block)
    settings = resolve(file, [], {})
    assert tomllib.loads(block)
    if settings.model != "auto":
        for name in names_by_role(settings).values():
            prices(settings).of(name)


@pytest.mark.slow
@pytest.mark.parametrize("line", RUNS)
def test_commands_of_the_examples_name_priced_models(line):
    words = shlex.split(line)
    model = words[words.index("--model") + 1]
    sets = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    settings = resolve(None, sets, {"model": model})
    assert provider_of(settings, model) or model in BUILTIN
    prices(settings).of(model)


def test_examples_were_found():
    assert len(BLOCKS) >= 4
    assert len(RUNS) >= 4


def test_named_variables_and_settings_exist():
    limits = Settings.model_fields["limits"].annotation.model_fields
    assert {"usd", "calls", "tokens", "output_tokens"} <= set(limits)
