"""Reading ``agent.toml``, and what a child may change."""

import re

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.meta.contract import read_contract

GOOD = (
    b'[agent]\ncommand = ["python3", "-m", "agent"]\ncheck = ["true"]\nprotected = ["tests/**", "*.lock"]\n'
)


def source(text=GOOD, **files):
    return {"agent.toml": Entry(text), **{name: Entry(data) for name, data in files.items()}}


def test_the_shipped_seed_keeps_the_contract():
    from dgm.meta.seeds import read_seed

    contract = read_contract(read_seed())
    assert contract.command == ("python3", "-m", "agent")
    assert not contract.may_change("agent.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b'[agent]\ncommand = ["a"]\ncheck = ["b"]\nactions = "words"',
            "agent.actions: 'words' is none of 'auto', 'tools', 'text'",
        ),
        (b"[agent", "not valid TOML"),
        (b"x = 1", r"no \[agent\] table"),
        (b'[agent]\ncheck = ["true"]', "agent.command is missing"),
        (b'[agent]\ncommand = []\ncheck = ["true"]', "must be a list of non-empty strings"),
        (b'[agent]\ncommand = "python3"\ncheck = ["true"]', "must be a list of non-empty strings"),
        (
            b'[agent]\ncomand = ["x"]\ncheck = ["true"]',
            r"unknown key 'agent.comand' \(did you mean 'command'\?\)",
        ),
        (b"\xff", r"not UTF-8 \(byte 0xff at line 1\)"),
        (GOOD + b"parts = 3", r"agent\.parts must be a table of lists"),
        (GOOD + b'[agent.parts]\nlop = ["x"]', r"unknown key 'agent\.parts\.lop' \(did you mean 'loop'\?\)"),
        (GOOD + b"[agent.parts]\nloop = []", r"agent\.parts\.loop must be a list of non-empty strings"),
    ],
)
def test_a_wrong_contract_is_the_agents_fault(text, message):
    with pytest.raises(AgentFault, match=message):
        read_contract(source(text))


@pytest.mark.parametrize(
    "package",
    ["openai", "openai>=3", "openai >=3, <4", "anthropic[vertex]==2.*", "x!=1,~=1.0", "a_b.c-d===1"],
)
def test_packages_are_named_as_pip_names_them(package):
    text = GOOD + f'requires = ["{package}"]\n'.encode()
    assert read_contract(source(text)).requires == (package,)


@pytest.mark.parametrize(
    "package",
    [
        "--index-url=http://x",
        "-r",
        "./here",
        "/etc",
        "..",
        "x @ file:///x",
        "git+https://x/y",
        "https://x/y.whl",
        "a;b",
        "a b",
    ],
)
def test_what_is_no_package_is_not_installed_on_the_host(package):
    text = GOOD + f'requires = ["{package}"]\n'.encode()
    with pytest.raises(AgentFault, match="is no package such as"):
        read_contract(source(text))


def test_a_missing_contract_is_named():
    with pytest.raises(AgentFault, match=r"no agent\.toml"):
        read_contract({})


def test_protected_paths_win():
    contract = read_contract(source())
    assert contract.may_change("agent/loop.py")
    assert not contract.may_change("tests/test_x.py")
    assert not contract.may_change("poetry.lock")
    assert not contract.may_change("agent.toml")


def test_added_changed_and_removed_files_are_all_changes():
    contract = read_contract(source())
    before = source(**{"a.py": b"1", "x.lock": b"1"})
    after = source(**{"a.py": b"2", "y.lock": b"1"})
    assert contract.forbidden_changes(before, after) == ["x.lock", "y.lock"]


@pytest.mark.parametrize(
    ("pattern", "path", "held"),
    [
        ("**/secret.py", "secret.py", True),
        ("**/secret.py", "a/b/secret.py", True),
        ("./core.py", "core.py", True),
        ("tools/", "tools/bash.py", True),
        ("tools/**", "tools/deep/bash.py", True),
        ("tools/*.py", "tools.py", False),
        ("*.lock", "poetry.lock.py", False),
    ],
)
def test_patterns_mean_what_they_say(pattern, path, held):
    text = GOOD.replace(b'["tests/**", "*.lock"]', f'["{pattern}"]'.encode())
    assert read_contract(source(text)).may_change(path) is not held


def with_lines(*lines, **files):
    text = b'[agent]\ncommand = ["a"]\ncheck = ["b"]\n' + "\n".join(lines).encode()
    return {"agent.toml": Entry(text), **{name: Entry(data) for name, data in files.items()}}


def test_the_dockerfile_of_the_own_image_is_protected():
    contract = read_contract(with_lines('image = "./Dockerfile"', Dockerfile=b"FROM dgm/python\n"))
    assert contract.image == "Dockerfile"
    assert not contract.may_change("Dockerfile")
    assert contract.may_change("a.py")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('image = "docker/Dockerfile"', "agent.image: there is no file 'docker/Dockerfile'"),
        ('trajectory = "/etc/passwd"', "agent.trajectory: '/etc/passwd': expected a file below /tmp"),
        ('trajectory = "../x"', "agent.trajectory: '../x': expected a file below /tmp"),
        ('hidden = ["/AGENTS.md"]', "agent.hidden: '/AGENTS.md' is no path"),
        ('hidden = ["a/../b"]', "agent.hidden: 'a/../b' is no path"),
        ('hidden = ["**AGENTS.md"]', "agent.hidden: '**AGENTS.md' is no path"),
        ('volatile = ["(a+)+b"]', "agent.volatile: '(a+)+b' repeats a group"),
        ("volatile = ['[']", "agent.volatile: '[' is no regular expression"),
        ("image = 3", "agent.image must be a Dockerfile's path or a recipe's name"),
        ('env = ["A=1"]', "agent.env must be a table of texts"),
        ("env = {DEPTH = 3}", 'agent.env.DEPTH: expected NAME = "text"'),
        ('env = {"A B" = "3"}', 'agent.env.A B: expected NAME = "text"'),
        ('env = {OPENAI_API_KEY = "mine"}', "agent.env.OPENAI_API_KEY: is set by dgm; leave it out"),
    ],
)
def test_an_image_and_variables_that_cannot_be_are_said(line, said):
    with pytest.raises(AgentFault, match=re.escape(said)):
        read_contract(with_lines(line))


def test_variables_are_texts_by_name():
    assert read_contract(with_lines('env = {DEPTH = "3"}')).env == {"DEPTH": "3"}


@pytest.mark.parametrize(("path", "installed"), [("agent.mjs", True), ("node_modules/a/index.js", False)])
def test_packages_of_a_lock_are_installed_unless_the_folder_has_them(path, installed):
    source = with_lines("") | {name: Entry(b"{}") for name in ("package.json", "package-lock.json", path)}
    contract = read_contract(source)
    assert contract.npm is installed
    assert contract.may_change("package-lock.json") is not installed


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("out/run.json", "/agent/out/run.json"),
        ("/tmp/run.json", "/tmp/run.json"),
        ("~/.a/**/*.jsonl", "/tmp/.a/**/*.jsonl"),
    ],
)
def test_a_trajectory_is_below_the_agents_folder_or_at_its_absolute_path(given, found):
    assert read_contract(with_lines(f'trajectory = "{given}"')).trajectory == found


def test_patterns_of_what_is_hidden_are_kept():
    assert read_contract(with_lines('hidden = ["**/AGENTS.md", ".qwen"]')).hidden == ("**/AGENTS.md", ".qwen")


def test_patterns_of_what_is_volatile_are_kept():
    assert read_contract(with_lines("volatile = ['nonce=[0-9]+']")).volatile == ("nonce=[0-9]+",)
