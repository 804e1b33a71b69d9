"""What the file of a sweep may say, which runs it stands for, and what is said of a wrong one."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from dgm.archive.run import Run
from dgm.config import resolve
from dgm.errors import UserError
from dgm.experiments.sweep_file import read_sweep
from dgm.experiments.sweep_plan import check_unchanged, plan_runs
from dgm.paths import asset
from tests.support.runs.made import make_run

GRID = """
[sweep]
seeds = "1:3"
[base]
model = "offline"
budget.evaluations = 8
[grid]
"policy.name" = ["lineage", "hgm"]
workers = [1, 2]
"""


def planned(tmp_path: Path, text: str, name: str = "try.toml"):
    file = tmp_path / name
    file.write_text(text)
    return plan_runs(read_sweep(file))


def test_all_points_of_the_grid_run_with_each_seed(tmp_path):
    runs = planned(tmp_path, GRID)
    assert [run.name for run in runs[:4]] == [
        "try-lineage-workers-1-1",
        "try-lineage-workers-2-1",
        "try-hgm-workers-1-1",
        "try-hgm-workers-2-1",
    ]
    assert [(run.seed, run.settings.policy.name, run.settings.workers) for run in runs[4:]] == [
        (2, "lineage", 1),
        (2, "lineage", 2),
        (2, "hgm", 1),
        (2, "hgm", 2),
    ]


def test_variants_stand_over_the_base_and_below_the_grid(tmp_path):
    text = """
    [sweep]
    name = "s"
    seeds = 1
    [base]
    workers = 3
    [[variant]]
    name = "plain"
    [[variant]]
    name = "wide"
    workers = 5
    policy.name = "hgm"
    policy.alpha = 0.5
    """
    runs = planned(tmp_path, text)
    assert [(run.name, run.settings.workers) for run in runs] == [("s-plain-0", 3), ("s-wide-0", 5)]
    assert runs[1].settings.policy.alpha == 0.5


@pytest.mark.parametrize(("seeds", "found"), [("[7, 3]", [7, 3]), ("3", [0, 1, 2]), ('"1:4"', [1, 2, 3])])
def test_seeds_are_a_list_a_number_or_a_range_as_of_simulate(tmp_path, seeds, found):
    assert [run.seed for run in planned(tmp_path, f"[sweep]\nseeds = {seeds}\n")] == found


def test_the_command_of_a_run_gives_the_same_settings(tmp_path):
    text = """
    [sweep]
    seeds = [4]
    [base]
    model = "offline"
    models.improve = [{model = "offline", weight = 2}]
    models.prices."openai/gpt-x.1" = {input = 1.5, output = 3}
    benchmarks.polyglot.languages = ["go", "rust"]
    operator = "self-edit+diagnose"
    limits.usd = 0.25
    gates.approve = true
    """
    (run,) = planned(tmp_path, text)
    words = shlex.split(shlex.join(run.command()))
    assert words[:5] == ["run", "--name", "try-4", "--seed", "4"]
    again = resolve(None, words[6::2], {"seed": 4})
    assert again == run.settings
    assert set(words[5::2]) == {"--set"}


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "sub" / "suite").mkdir(parents=True)
    (tmp_path / "sub" / "suite" / "suite.toml").write_text("")
    shutil.copytree(asset("archive", "seeds", "plain"), tmp_path / "sub" / "seed")
    monkeypatch.chdir(tmp_path)
    text = '[sweep]\nseeds = 1\n[base]\nbenchmark = "suite+starter"\nseed_agent = "seed"\n'
    (run,) = planned(tmp_path, text, "sub/try.toml")
    assert run.settings.benchmark == f"{tmp_path / 'sub' / 'suite'}+starter"
    assert run.settings.seed_agent == str(tmp_path / "sub" / "seed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[swep]\n", "unknown key 'swep' (did you mean [sweep]?)"),
        ("[base]\n", "there is no [sweep] table"),
        ("[sweep]\nseds = 1", "[sweep] unknown key 'seds' (did you mean 'seeds'?)"),
        ("[sweep]\nname = 'a'", "[sweep] seeds is missing"),
        (
            "[sweep]\nseeds = 1\nworkers = 2",
            "[sweep] unknown key 'workers' (settings of the runs stand in [base])",
        ),
        (
            "model = 'offline'\n[sweep]\nseeds = 1",
            "unknown key 'model' (settings of the runs stand in [base])",
        ),
        ("[sweep]\nseeds = '4:1'", "there is no seed in it"),
        ("[sweep]\nseeds = [1, 1]", "the seed 1 is there twice"),
        ("[sweep]\nseeds = [-1]", "a seed is a number from 0 on"),
        ("[sweep]\nseeds = true", "expected a list"),
        ("[sweep]\nseeds = 1\nat_once = 0", "[sweep] at_once = 0: "),
        ("[sweep]\nname = 'a b'\nseeds = 1", "the sweep's name 'a b'"),
        ("[sweep]\nseeds = 1\n[base]\nseed = 3", "[base] seed: each run's seed is one of seeds in [sweep]"),
        (
            "[sweep]\nseeds = 1\n[base]\npolicy.nme = 'hgm'",
            "[base]: unknown setting 'policy.nme' (did you mean",
        ),
        ("[sweep]\nseeds = 1\n[[variant]]\nworkers = 2", "[[variant]] number 1: has no name"),
        ("[sweep]\nseeds = 1\n[variant]\nname = 'a'", "write [[variant]] with two brackets"),
        (
            "[sweep]\nseeds = 1\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'a'",
            "two variants are named 'a'",
        ),
        (
            "[sweep]\nseeds = 1\n[[variant]]\nname = 'a'\npolicy.name = 'hgmm'",
            "variant 'a': unknown name 'hgmm'",
        ),
        ("[sweep]\nseeds = 1\n[grid]\nworkers = 3", "[grid] workers = 3: expected a list"),
        ("[sweep]\nseeds = 1\n[grid]\nworkers = [1, 'x']", "[grid]: workers = 'x'"),
        ("[sweep]\nseeds = 1\nmax_usd = 3", "run try-0 has no limit of its own to count with"),
        ("[sweep]\nseeds = 1\nmax_usd = 3\n[base]\nbudget.usd = 4", "run try-0 alone may cost 4 USD"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, said):
    with pytest.raises(UserError) as caught:
        planned(tmp_path, text)
    assert said in str(caught.value)
    assert str(tmp_path / "try.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_gives_a_begun_run_other_settings_is_refused(tmp_path):
    before = planned(tmp_path, GRID)[0]
    changed = planned(tmp_path, GRID.replace("evaluations = 8", "evaluations = 9"))[0]
    with Run.open(make_run(tmp_path / before.name, before.settings)) as run:
        check_unchanged(tmp_path / "try.toml", before, run)
        with pytest.raises(UserError, match=r"budget\.evaluations is 9, but run .* was begun with 8"):
            check_unchanged(tmp_path / "try.toml", changed, run)


def test_the_files_in_the_document_are_sweeps(tmp_path):
    document = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text()
    first, second = re.findall(r"```toml\n(.*?)```", document, re.DOTALL)
    runs = planned(tmp_path, first, "policies.toml")
    assert [run.name for run in runs][:2] == ["policies-lineage-1", "policies-hgm-1"]
    assert {run.seed for run in runs} == {1, 2, 3}
    both = planned(tmp_path, first.partition("[grid]")[0] + second)
    assert {run.variant for run in both} == {"plain", "crossover"}
