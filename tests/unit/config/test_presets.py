"""Presets: every shipped one opens, the user's own settings win over it, and an unknown one is named."""

import re

import pytest

from dgm import assemble
from dgm.api.batching import evolve_batch
from dgm.cli.main import main
from dgm.config import Settings, resolve
from dgm.errors import UserError
from dgm.meta.operators import BUILTIN
from dgm.paths import preset_file, preset_names


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_opens_and_says_what_it_is_after(name):
    settings = resolve(None, ["model=offline"], {}, name)
    assemble.check_settings(settings)
    assert set(settings.operator_names) <= BUILTIN.keys()
    assert settings != resolve(None, ["model=offline"], {})
    assert re.match(r"# \S.* \(arXiv:\d{4}\.\d{5}\)\n", preset_file(name).read_text())


def test_the_file_and_the_options_win_over_a_preset(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[policy]\nname = "random"\n[evidence]\nothers = 5\n')
    settings = resolve(file, ["evidence.others=7"], {"operator": "self-edit"}, "dgm")
    evidence = settings.evidence
    assert (settings.policy.name, settings.operator) == ("random", "self-edit")
    assert (evidence.ancestors, evidence.others) == (0, 7)
    assert resolve(None, [], {}, "dgm").operator == "diagnose" != Settings().operator


def test_an_unknown_preset_is_one_line_with_the_known_ones():
    for call in (lambda: resolve(None, [], {}, "adsa"), lambda: evolve_batch(preset="adsa", seeds="0:2")):
        with pytest.raises(UserError) as error:
            call()
        assert error.value.argument == "preset"
        assert all(name in error.value.problem for name in ("adsa", *preset_names()))
        assert "\n" not in str(error.value)


def test_a_conflict_with_a_preset_names_it():
    with pytest.raises(UserError, match=r"^preset adas: operators\.weights\.invent"):
        resolve(None, ["operator=diagnose"], {}, "adas")


def test_the_list_has_a_line_for_each_preset(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--preset", "list"])
    assert not ended.value.code
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(preset_names())
    assert lines[0].endswith("(arXiv:2408.08435)")
