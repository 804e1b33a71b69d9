"""A plug-in of every kind is named and made as a built-in part of its kind is."""

import re
import sys
from dataclasses import fields

import pytest

from dgm.benchmarks.formats import BenchmarkContext
from dgm.benchmarks.opening import open_suite
from dgm.config import BenchmarksSettings, Settings
from dgm.errors import UserError
from dgm.meta.operators import OperatorContext, open_operators
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.self_edit import SelfEdit
from dgm.models.builtin import ModelContext, RecordedModel
from dgm.models.choose import open_model
from dgm.plugins import find_installed
from dgm.policies.registry import PolicyContext, open_policy
from dgm.sandboxes.choose import SandboxContext, choose
from tests.unit.benchmarks.test_suites import NoEngine

RECORDS = {
    "operators": OperatorContext,
    "models": ModelContext,
    "benchmarks": BenchmarkContext,
    "policies": PolicyContext,
    "sandboxes": SandboxContext,
}
KINDS = tuple(RECORDS)
PACKAGE = """
class Part:
    name, version = "part", "1"
    def again(self, task, grade, tried): ...
    def check(self): ...
    def close(self): ...
    def grade(self, task, patch, labels): ...
    def make(self, brief, bench): ...
    def decide(self, view, rng): ...
    def open(self, spec): ...
    def reap(self, labels): ...
    def observe(self, event): ...
    def reply(self, request): ...
    def task(self, task): ...
    def tasks(self, split): ...
    def workspace(self, task): ...

class Whole(Part):
    def __init__(self, everything):
        self.got = everything

class Typo(Part):
    def __init__(self, setings, more):
        pass

class ByName(Part):
    def __init__(self, **fields):
        self.got = fields
"""
BUILTIN = """
[dgm.operators]
moved = dgm.meta.self_edit:SelfEdit
[dgm.models]
moved = dgm.models.builtin:RecordedModel
[dgm.benchmarks]
polyglot = contexts_plugin:Whole
moved = dgm.benchmarks.polyglot:FORMAT
[dgm.policies]
moved = dgm.policies.hgm:chance
[dgm.sandboxes]
moved = dgm.sandboxes.choose:open_bubblewrap
"""


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    (tmp_path / "contexts_plugin.py").write_text(PACKAGE)
    names = {"whole": "Whole", "typo": "Typo", "by-name": "ByName"}
    points = "".join(f"{name} = contexts_plugin:{attribute}\n" for name, attribute in names.items())
    info = tmp_path / "contexts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: contexts\nVersion: 1\n")
    mine = BUILTIN
    for kind in KINDS:
        mine = mine.replace(f"[dgm.{kind}]\n", f"[dgm.{kind}]\n{points}")
    (info / "entry_points.txt").write_text(mine)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("contexts_plugin", None)


def open_part(kind, name):
    if kind == "operators":
        return open_operators(Settings(operator=name), "python", Prompts(load_shipped()))[name]
    if kind == "models":
        return open_model(name)
    if kind == "benchmarks":
        return open_suite(name, NoEngine())
    if kind == "sandboxes":
        return choose(name)
    return open_policy(Settings(policy={"name": name}))


def names_of(record):
    return [field.name for field in fields(record) if not field.name.startswith("_")]


def got_of(part):
    """What a part was made from; a policy that is a class sees all events."""
    return (part if hasattr(part, "got") else vars(part)["_observers"][0]).got


@pytest.mark.parametrize("kind", KINDS)
def test_a_factory_gets_the_whole_record(kind):
    assert type(got_of(open_part(kind, "whole"))) is RECORDS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_factory_gets_all_fields_by_name(kind):
    assert list(got_of(open_part(kind, "by-name"))) == names_of(RECORDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_behind_a_reference_gets_the_record(kind):
    if kind != "models":  # a model is never named by reference
        assert type(got_of(open_part(kind, "contexts_plugin:Whole"))) is RECORDS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_factory_that_asks_for_more_is_one_line(kind):
    there = ", ".join(names_of(RECORDS[kind]))
    with pytest.raises(UserError) as raised:
        open_part(kind, "typo")
    said = str(raised.value)
    assert said.startswith(f"plug-in 'typo' among the {kind} (contexts_plugin:Typo, of contexts), ")
    assert re.search(
        r"contexts_plugin\.py:22: arguments 'setings', 'more' are no fields of \w+Context \(", said
    )
    assert f"there are: {there})" in said
    assert "\n" not in said


@pytest.mark.slow
def test_what_is_built_in_can_be_an_entry_point():
    assert all("moved" in find_installed(kind) for kind in KINDS)
    assert isinstance(open_part("operators", "moved"), SelfEdit)
    model = open_part("models", "moved")
    assert (type(model), model.name) == (RecordedModel, "moved")
    assert open_part("benchmarks", "moved").version == open_part("benchmarks", "polyglot:").version
    assert open_part("policies", "moved").name == "moved"


def test_a_benchmark_may_have_the_bare_name_of_a_format():
    assert got_of(open_part("benchmarks", "polyglot")).name == "polyglot"


def test_a_benchmark_gets_the_settings_of_benchmarks():
    settings, engine = BenchmarksSettings.model_validate({"polyglot": {"attempts": 2}}), NoEngine()
    assert got_of(open_suite("whole", engine, settings)) == BenchmarkContext("whole", engine, settings)
