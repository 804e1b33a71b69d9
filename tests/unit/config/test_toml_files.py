"""TOML files as editors leave them, and the paths in them."""

import codecs
import re

import pytest

from dgm.config import resolve
from dgm.config.toml_files import NotToml, parse_toml, read_toml
from dgm.errors import UserError

BOM = codecs.BOM_UTF8


@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_marks_and_line_ends_of_every_editor_are_read(mark, end):
    lines = [b"# caf\xc3\xa9", b"workers = 3", b'text = """a', b'b"""', b"[policy]", b'name = "hgm"']
    assert parse_toml(mark + end.join(lines)) == {"workers": 3, "text": "a\nb", "policy": {"name": "hgm"}}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"= =", "not valid TOML: Invalid statement (at line 1, column 1)"),
        (b"a = 1\r\nb = '\xe9'", "not UTF-8 (byte 0xe9 at line 2); save it as UTF-8"),
        ("workers = 3".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data, problem, tmp_path):
    with pytest.raises(NotToml, match=f"^{re.escape(problem)}$"):
        parse_toml(data)
    file = tmp_path / "x.toml"
    file.write_bytes(data)
    with pytest.raises(UserError, match=f"^{re.escape(f'{file}: {problem}')}$"):
        read_toml(file)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A settings file in a folder with a suite, exercises, instances and an agent, seen from another folder."""
    beside = tmp_path / "beside"
    for suite in ("mine", "a+b", "starter"):
        (beside / suite).mkdir(parents=True)
        (beside / suite / "suite.toml").write_text("")
    (beside / "exercises").mkdir()
    (beside / "rows.jsonl").write_text("")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return beside


@pytest.mark.parametrize(
    ("value", "placed"),
    [
        ("mine", "{}/mine"),
        ("./mine", "{}/mine"),
        ("../beside/mine", "{}/../beside/mine"),
        ("not/there", "{}/not/there"),
        ("starter", "starter"),
        ("plugged-in", "plugged-in"),
        ("a+b", "{}/a+b"),
        ("starter+mine+a+b", "starter+{}/mine+{}/a+b"),
        ("polyglot:exercises", "polyglot:{}/exercises"),
        ("polyglot:https://example.org/x.git", "polyglot:https://example.org/x.git"),
        ("polyglot:", "polyglot:"),
        ("swebench:rows.jsonl", "swebench:{}/rows.jsonl"),
        ("swebench:lite", "swebench:lite"),
        ("/abs/suite", "/abs/suite"),
    ],
)
def test_a_benchmark_in_a_file_is_relative_to_the_file(value, placed, folders):
    file = folders / "run.toml"
    file.write_text(f'benchmark = "{value}"\n')
    assert resolve(file, [], {}).benchmark == placed.replace("{}", str(folders))


@pytest.mark.parametrize(
    ("value", "placed"),
    [
        ("agent", "{}/agent"),
        ("~/agent", "~/agent"),
        ("https://example.org/a.git", "https://example.org/a.git"),
        ("git@example.org:a.git", "git@example.org:a.git"),
    ],
)
def test_a_seed_agent_in_a_file_is_relative_to_the_file(value, placed, folders, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    file = folders / "run.toml"
    file.write_text(f'seed_agent = "{value}"\n')
    wanted = placed.replace("{}", str(folders)).replace("~", "/home/somebody")
    assert resolve(file, [], {}).seed_agent == wanted
    file.write_text(f'seed_agent = ["solid", "{value}"]\n')
    assert resolve(file, [], {}).seed_agent == ("solid", wanted)


def test_subsets_are_placed_and_flags_stay_relative_to_the_working_directory(folders):
    file = folders / "run.toml"
    file.write_text('benchmark = "mine"\n[benchmarks.swebench]\nsubset = "some.toml"\n')
    settings = resolve(file, ["seed_agent=agent"], {"benchmark": "mine"})
    assert settings.benchmarks.swebench.subset == str(folders / "some.toml")
    assert (settings.seed_agent, settings.benchmark) == ("agent", "mine")
    file.write_text('[benchmarks.swebench]\nsubset = "papers-60"\n')
    assert resolve(file, [], {}).benchmarks.swebench.subset == "papers-60"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("odd = " + "[" * 5000 + "]" * 5000, "nested more than 64 levels deep"),
        ("a = " + "{a=" * 3000 + "1" + "}" * 3000, "nested more than 64 levels deep"),
        (".".join(["a"] * 100_000) + " = 1", "a key has more than 64 parts"),
        ("[" + ".".join(["a"] * 100_000) + "]", "a key has more than 64 parts"),
        (" . ".join(['"a.b"', "'c'"] * 100) + " = 1", "a key has more than 64 parts"),
        ("odd = " + "9" * 5000, "not valid TOML: Exceeds the limit"),
        ("odd = 0x" + "f" * 5000, "a whole number does not fit into 64 bits"),
        ("a = 1\n" * 500_000, "larger than 2,000,000 bytes"),
    ],
)
def test_strangers_toml_is_bounded(data, problem):
    with pytest.raises(NotToml, match=f"^{re.escape(problem)}"):
        parse_toml(data.encode())
