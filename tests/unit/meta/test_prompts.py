"""What operators say to models: as files, and frozen with a run."""

import json
import re
from importlib.resources import files
from types import SimpleNamespace

import pytest

from dgm.archive.run import Run
from dgm.assemble import RunParts, operators_of, record_of, record_resume
from dgm.config import Settings
from dgm.domain import Budget
from dgm.errors import ArchiveCorrupt
from dgm.meta.prompts import Prompts, load_frozen, load_shipped
from dgm.models.choose import OFFLINE_VERSION
from tests.support.runs.made import make_run


@pytest.mark.parametrize("name", sorted(load_shipped()))
def test_every_prompt_names_its_source_and_does_not_say_it(name):
    first = files("dgm.meta.prompts").joinpath(f"{name}.md").read_text().splitlines()[0]
    assert first.startswith("<!-- Source: ")
    assert first.endswith(" -->")
    assert "Source:" not in load_shipped()[name]


def test_a_run_keeps_the_words_that_it_was_begun_with():
    prompts = load_frozen({"prompts": {"self-edit": "Mend $what."}}, "run.json")
    assert prompts.fill("self-edit", {"what": "it", "more": 1}) == "Mend it."


def test_what_a_run_was_begun_without_is_as_shipped():
    values = dict.fromkeys(re.findall(r"\$(\w+)", load_shipped()["self-edit"]), 7)
    config = {"prompts": {"another": "text"}}
    assert load_frozen(config, "run.json").fill("self-edit", values) == Prompts(load_shipped()).fill(
        "self-edit", values
    )


@pytest.mark.parametrize("texts", [["self-edit"], {"self-edit": 3}, "text"])
def test_damaged_prompts_are_named(texts):
    with pytest.raises(ArchiveCorrupt, match=r"run\.json: its prompts are not a table of texts"):
        load_frozen({"prompts": texts}, "run.json")


@pytest.mark.parametrize("text", ["costs 5 $", "Mend ${it", "$ it"])
def test_a_prompt_that_is_no_template_is_named(text):
    with pytest.raises(ArchiveCorrupt, match=r"run\.json: the prompt 'self-edit' has a '\$' without a name"):
        load_frozen({"prompts": {"self-edit": text}}, "run.json")


def test_a_prompt_that_names_what_there_is_not_is_named():
    prompts = load_frozen({"prompts": {"self-edit": "Mend $nosuch."}}, "run.json")
    with pytest.raises(
        ArchiveCorrupt, match=r"run\.json: the prompt 'self-edit' names \$nosuch, which has no"
    ):
        prompts.fill("self-edit", {"what": "it"})


def test_a_new_run_is_begun_with_the_words_of_its_time(tmp_path):
    parts = RunParts(SimpleNamespace(name="bubblewrap"), SimpleNamespace(version="1"))
    assert record_of(tmp_path / "run", Settings(), parts)["prompts"] == load_shipped()


@pytest.mark.parametrize(("model", "name"), [("offline", "plain"), ("openai/m", "solid")])
def test_a_new_run_records_the_agent_that_it_starts_from(tmp_path, model, name):
    parts = RunParts(SimpleNamespace(name="bubblewrap"), SimpleNamespace(version="1"))
    assert record_of(tmp_path / "run", Settings(model=model), parts)["seed_agent"] == name


@pytest.mark.parametrize(("model", "version"), [("offline", OFFLINE_VERSION), ("openai/m", None)])
def test_a_new_run_records_the_version_of_the_offline_model(tmp_path, model, version):
    parts = RunParts(SimpleNamespace(name="bubblewrap"), SimpleNamespace(version="1"))
    assert record_of(tmp_path / "run", Settings(model=model), parts)["versions"].get("offline") == version


@pytest.mark.starts_processes
@pytest.mark.parametrize(("then", "warned"), [({}, True), ({"offline": OFFLINE_VERSION}, False)])
def test_a_run_that_goes_on_with_another_offline_model_warns(tmp_path, caplog, then, warned):
    make_run(tmp_path / "run")
    frozen = json.loads((tmp_path / "run" / "run.json").read_text())
    frozen["config"]["versions"] |= then
    (tmp_path / "run" / "run.json").write_text(json.dumps(frozen))
    tasks = SimpleNamespace(version="1", tasks=lambda split: ())
    with Run.open(tmp_path / "run", write=True) as run:
        record_resume(run, Budget(), RunParts(SimpleNamespace(name="bubblewrap"), tasks))
    assert ("began with version 1 of the offline model" in caplog.text) == warned


def test_operators_speak_as_their_run_was_begun(tmp_path):
    with Run.create(tmp_path / "run", {"prompts": {"self-edit": "Mend it."}}) as run:
        operator = operators_of(run, Settings())["self-edit"]
    assert operator.making.prompts.fill("self-edit", {}) == "Mend it."
