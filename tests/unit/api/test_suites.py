"""``dgm.benchmark_list`` and ``dgm.benchmark_show``, and the commands: hidden tests stay hidden unless asked for."""

import json

import pytest

import dgm
from dgm.cli.main import main
from dgm.errors import UserError
from tests.support.named_suite import TASK, make_named_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return make_named_suite(tmp_path_factory.mktemp("suite") / "mined")


def run(capsys, *words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", *map(str, words)])
    assert (ended.value.code or 0) == code
    return capsys.readouterr()


def test_the_shipped_suites_and_the_forms_of_other_names_are_listed(capsys):
    view = dgm.benchmark_list()
    tasks = {row.name: row.tasks for row in view.suites}
    assert tasks["starter"] == {"search": 40, "promotion": 0, "holdout": 20}
    assert "polyglot:" in tasks
    assert any(form.form.startswith("swebench:") for form in view.named)
    assert json.loads(run(capsys, "list", "--json").out) == view.model_dump(mode="json")


@pytest.mark.starts_processes
def test_a_suite_is_a_table_of_its_tasks(suite, capsys):
    view = dgm.benchmark_show(suite)
    (row,) = view.facts
    assert view.ids == {"search": (TASK,), "promotion": (), "holdout": ()}
    assert (row.task, row.kind, row.date, row.fail_to_pass, row.pass_to_pass) == (
        TASK,
        "history",
        "2026-11-27",
        2,
        1,
    )
    assert (row.added, row.removed, row.modules) == (1, 1, ("src/sums.py",))
    lines = run(capsys, "show", suite).out.splitlines()
    head = lines.index("search: 1 task")
    assert lines[head + 1].split() == ["task", "kind", "day", "F2P", "P2P", "lines", "module"]
    assert lines[head + 2].split() == [TASK, "history", "2026-11-27", "2", "1", "+1", "-1", "src/sums.py"]


@pytest.mark.starts_processes
def test_a_task_is_shown_without_its_hidden_tests_and_fix(suite, capsys):
    view = dgm.benchmark_show(suite, TASK)
    assert view.origin.fail_to_pass[0] == "tests/test_sums.py::test_half"
    assert (view.origin.split, view.origin.changes) == ("search", {"src/sums.py": (1, 1)})
    assert view.origin.provenance.kind == "history"
    assert "src/sums.py" in view.workspace
    text = run(capsys, "show", suite, TASK).out
    assert "half(4) is 1" in text
    for shown in (text, view.model_dump_json()):
        assert "half(10) == 5" not in shown
        assert "number // 2" not in shown


@pytest.mark.starts_processes
def test_hidden_tests_and_the_fix_are_shown_on_request(suite, capsys):
    view = dgm.benchmark_show(suite, TASK, hidden=True)
    assert "assert half(10) == 5" in view.hidden.tests["tests/test_sums.py"]
    assert "+    return number // 2" in view.hidden.solution
    text = run(capsys, "show", suite, TASK, "--hidden").out
    assert "--- hidden: tests/test_sums.py" in text
    assert "+    return number // 2" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "startr"), "did you mean 'starter'"),
        (("show", "starter", "nothing"), "no task 'nothing'"),
        (("show", "starter+"), "nothing stands on one side of a '+'"),
        (("show", "swebench"), "say which, as in swebench:verified"),
        (("show", "starter", "--hidden"), "--hidden: name the task"),
        (("show", "starter", "--set", "benchmarks.swebench.subst=x"), "subst"),
        (("verify", "starter", "--workers", "0"), "--workers"),
        (("verify", "starter", "--set", "sandbox=none"), "none"),
        (("make", "x", "/nowhere"), "/nowhere"),
        (("make", "x", "starter", "--by", "size"), "size"),
        (("filter", "starter"), "dgm benchmark make"),
        (("lsit",), "did you mean 'benchmark list'?"),
    ],
)
def test_bad_input_is_one_line(capsys, words, message):
    err = run(capsys, *words, code=2).err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("settings", [{"benchmarks.swebensh.subset": "x"}, ["benchmarks.swebensh.subset=x"]])
def test_an_unknown_setting_is_refused(settings):
    with pytest.raises(UserError, match="did you mean"):
        dgm.benchmark_show("starter", settings=settings)


def test_the_group_lists_its_commands(capsys):
    out = run(capsys).out
    assert out == run(capsys, "--help").out
    assert [line.split()[0] for line in out.splitlines()[5:]] == [
        "list",
        "show",
        "fetch",
        "verify",
        "mine",
        "make",
    ]
