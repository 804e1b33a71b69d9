"""Reading ``agent.toml``, and what a child may change."""

import re

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.meta.contract import FILE, read_contract
from tests.unit.meta.making import SEED

START = 'command = ["a"]\ncheck = ["b"]\n'


def source(text="", start=START, **files):
    toml = f"[agent]\n{start}{text}"
    return {FILE: Entry(toml.encode()), **{path: Entry(data.encode()) for path, data in files.items()}}


def test_the_shipped_seed_keeps_the_contract():
    contract = read_contract(SEED)
    assert contract.command == ("python3", "-m", "agent")
    assert (contract.protected, contract.editable, contract.npm) == ((FILE,), ("**",), False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[agent", "not valid TOML"),
        (b"x = 1", "no [agent] table"),
        (b"\xff", "not UTF-8 (byte 0xff at line 1)"),
        (b'[agent]\ncheck = ["true"]', "agent.command is missing"),
        (b'[agent]\ncommand = []\ncheck = ["b"]', "agent.command must be a list of non-empty strings"),
        (b'[agent]\ncommand = "a"\ncheck = ["b"]', "agent.command must be a list of non-empty strings"),
        (b'[agent]\ncomand = ["a"]\ncheck = ["b"]', "unknown key 'agent.comand' (did you mean 'command'?)"),
        *(
            (f"[agent]\n{START}{line}".encode(), message)
            for line, message in {
                'actions = "words"': "agent.actions: 'words' is none of 'auto', 'tools', 'text'",
                "npm = true": "unknown key 'agent.npm'",
                "parts = 3": "agent.parts must be a table of lists",
                '[agent.parts]\nlop = ["x"]': "unknown key 'agent.parts.lop' (did you mean 'loop'?)",
                "[agent.parts]\nloop = []": "agent.parts.loop must be a list of non-empty strings",
                'image = "docker/Dockerfile"': "agent.image: there is no file 'docker/Dockerfile'",
                "image = 3": "agent.image must be a Dockerfile's path or a recipe's name",
                'trajectory = "/etc/passwd"': "agent.trajectory: '/etc/passwd': expected a file below /tmp",
                'trajectory = "../x"': "agent.trajectory: '../x': expected a file below /tmp",
                'ignored = ["!x"]': "agent.ignored: '!x' is no pattern",
                'hidden = ["/AGENTS.md"]': "agent.hidden: '/AGENTS.md' is no path",
                'hidden = ["a/../b"]': "agent.hidden: 'a/../b' is no path",
                'hidden = ["**AGENTS.md"]': "agent.hidden: '**AGENTS.md' is no path",
                'volatile = ["(a+)+b"]': "agent.volatile: '(a+)+b' repeats a group",
                "volatile = ['[']": "agent.volatile: '[' is no regular expression",
                'env = ["A=1"]': "agent.env must be a table of texts",
                "env = {DEPTH = 3}": 'agent.env.DEPTH: expected NAME = "text"',
                'env = {"A B" = "3"}': 'agent.env.A B: expected NAME = "text"',
                'env = {OPENAI_API_KEY = "mine"}': "agent.env.OPENAI_API_KEY: is set by dgm; leave it out",
            }.items()
        ),
    ],
)
def test_a_wrong_contract_is_the_agents_fault(data, message):
    with pytest.raises(AgentFault, match=re.escape(message)) as fault:
        read_contract({FILE: Entry(data)})
    assert fault.value.stage == "contract"


def test_a_missing_contract_is_named():
    with pytest.raises(AgentFault, match=r"no agent\.toml"):
        read_contract({})


@pytest.mark.parametrize(
    ("package", "is_good"),
    [
        *((name, True) for name in ("openai", "openai >=3, <4", "anthropic[vertex]==2.*", "a_b.c-d===1")),
        *((name, False) for name in ("--index-url=http://x", "-r", "./here", "/etc", "..", "a;b", "a b")),
        *((name, False) for name in ("x @ file:///x", "git+https://x/y", "https://x/y.whl")),
    ],
)
def test_only_names_and_versions_of_packages_are_installed(package, is_good):
    agent = source(f'requires = ["{package}"]\n')
    if is_good:
        assert read_contract(agent).requires == (package,)
    else:
        with pytest.raises(AgentFault, match="is no package such as"):
            read_contract(agent)


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("env", '{DEPTH = "3"}', {"DEPTH": "3"}),
        ("trajectory", '"out/run.json"', "/agent/out/run.json"),
        ("trajectory", '"/tmp/run.json"', "/tmp/run.json"),
        ("trajectory", '"~/.a/**/*.jsonl"', "/tmp/.a/**/*.jsonl"),
        ("hidden", '["**/AGENTS.md", ".qwen"]', ("**/AGENTS.md", ".qwen")),
        ("volatile", "['nonce=[0-9]+']", ("nonce=[0-9]+",)),
        ("ignored", '[".notes/"]', (".notes/",)),
        ("image", '"python"', "python"),
        ("editor", '"solid"', "solid"),
        ("parts", '{loop = ["a"]}', {"loop": ("a",)}),
    ],
)
def test_values_are_read(key, written, value):
    assert getattr(read_contract(source(f"{key} = {written}")), key) == value


@pytest.mark.parametrize(
    ("pattern", "path", "is_protected"),
    [
        ("**/secret.py", "secret.py", True),
        ("**/secret.py", "a/b/secret.py", True),
        ("./core.py", "core.py", True),
        ("tools/", "tools/bash.py", True),
        ("tools/**", "tools/deep/bash.py", True),
        ("tools/*.py", "tools.py", False),
        ("*.lock", "poetry.lock", True),
        ("*.lock", "poetry.lock.py", False),
        ("x", FILE, True),
    ],
)
def test_protected_patterns_win(pattern, path, is_protected):
    contract = read_contract(source(f'protected = ["{pattern}"]'))
    assert contract.may_change(path) is not is_protected


def test_added_changed_and_removed_files_are_all_changes():
    contract = read_contract(source('protected = ["*.lock"]'))
    before = source(**{"a.py": "1", "x.lock": "1", "z.lock": "1"})
    after = source(**{"a.py": "2", "y.lock": "1", "z.lock": "2"})
    assert contract.forbidden_changes(before, after) == ["x.lock", "y.lock", "z.lock"]


def test_the_dockerfile_of_the_own_image_and_files_of_npm_are_protected():
    contract = read_contract(source('image = "./Dockerfile"', Dockerfile="FROM dgm/python\n"))
    assert contract.image == "Dockerfile"
    assert [path for path in ("Dockerfile", "a.py") if contract.may_change(path)] == ["a.py"]
    for path, npm in (("agent.mjs", True), ("node_modules/a/index.js", False)):
        contract = read_contract(source(**{"package.json": "", "package-lock.json": "", path: ""}))
        assert (contract.npm, contract.may_change("package-lock.json")) == (npm, not npm)
