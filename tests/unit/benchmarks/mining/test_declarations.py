"""What a repository's files say that it and its tests need."""

import pytest

from dgm.benchmarks.mining.declarations import name_of, read_declarations
from dgm.domain import Entry


def read(**files):
    named = {"pyproject": "pyproject.toml", "cfg": "setup.cfg", "py": "setup.py", "tox": "tox.ini"}
    return read_declarations({named.get(name, name): Entry(text.encode()) for name, text in files.items()})


def test_pyproject_with_groups_that_include_others():
    found = read(
        pyproject="""
[project]
name = "My.Project"
version = "2.1"
dependencies = ["attrs>=22", "my-project[extra]"]
[project.optional-dependencies]
tests = ["pytest>=7", "freezegun"]
docs = ["sphinx"]
[project.scripts]
mine = "my.main:run"
[dependency-groups]
base = ["pretend"]
dev = [{include-group = "base"}, {include-group = "dev"}, "mypy"]
"""
    )
    assert (found.project, found.version, found.needed) == ("my-project", "2.1", ("attrs>=22",))
    assert found.tests == ("freezegun", "pretend", "pytest>=7")
    assert found.scripts == (("console_scripts", "mine", "my.main:run"),)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("^1.2.3", "<2,>=1.2.3"), ("^0.3", "<0.4,>=0.3"), ("~1.4", "<1.5,>=1.4"), ("1.0", "==1.0"), ("*", ""),
     (">=2,<3", "<3,>=2")],
)  # fmt: skip
def test_versions_of_poetry(given, meant):
    found = read(pyproject=f'[tool.poetry.dependencies]\npython = "^3.9"\nlib = "{given}"\n')
    assert found.needed == (f"lib{meant}",)


def test_setup_py_with_names_of_the_module():
    found = read(
        py="from setuptools import setup\nneeds = ['six']\nsetup(name='old', version='1', install_requires=needs,\n"
        "      extras_require={'test': ['mock']}, entry_points={'console_scripts': ['old = old:main']})\n"
    )
    assert (found.project, found.version, found.needed, found.tests) == ("old", "1", ("six",), ("mock",))
    assert found.scripts == (("console_scripts", "old", "old:main"),)


def test_setup_cfg_tox_and_requirement_files():
    found = read(
        cfg="[metadata]\nname = a\nversion = attr: a.v\n[options]\ninstall_requires =\n    six\n",
        tox="[testenv]\ndeps =\n    py27: mock\n    -r more.txt\n    hypothesis<5  # old\n"
        "[testenv:docs]\ndeps = sphinx\n",
        **{"requirements.txt": "idna==3.1 --hash=sha256:0\n-e .\nhttps://example.org/x.zip\n-r more.txt\n",
           "requirements/test.txt": "responses\n", "requirements/docs.txt": "furo\n"},
    )  # fmt: skip
    assert (found.version, found.needed, found.tests) == (
        "",
        ("idna==3.1", "six"),
        ("hypothesis<5", "mock", "responses"),
    )
    assert found.remark == "without https://example.org/x.zip (an address, a path or an option)"


def test_unreadable_files_declare_nothing():
    assert read(pyproject="[[", py="def", cfg="x", tox="[").needed == ()


def test_roots_are_where_modules_are():
    assert read(**{"src/a/__init__.py": ""}).roots == ("src", ".")
    assert read(**{"a/__init__.py": ""}).roots == (".",)


def test_commits_with_equal_declarations_share_a_digest():
    one, same = (read(pyproject='[project]\nname="a"\n', **{name: "1"}) for name in ("a.py", "b.py"))
    assert one.digest == same.digest != read(pyproject='[project]\nname="a"\ndependencies=["b"]\n').digest


def test_requirements_by_address_have_no_name():
    assert (name_of("A_b [x] >= 1"), name_of("git+https://example.org/a")) == ("a-b", "")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Attrs [a, B] >=22 ; python_version < '3.12'", 'attrs[B,a]>=22; python_version < "3.12"'),
        ("six (>=1.0)", "six>=1.0"),
        ("old>=1.*,<2", "old"),
        ("zope.interface", "zope-interface"),
        ("x.whl", "x-whl"),
    ],
)
def test_a_requirement_by_name_is_kept(given, kept):
    assert read(pyproject=f'[project]\ndependencies = ["{given}"]\n').needed == (kept,)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("evil @ http:/127.0.0.1/${KEY}/evil-1.0-py3-none-any.whl", "evil"),
        ("evil@https://example.org/evil.whl", "evil"),
        ("evil @ git+ssh://git@example.org/evil", "evil"),
        ("evil @ file:///etc/passwd", "evil"),
        ("evil @ ../evil", "evil"),
        ("git+https://example.org/evil#egg=evil", "evil"),
        ("git+https://example.org/evil", "git+https://example.org/evil"),
        ("http:/example.org/evil.whl", "http:/example.org/evil.whl"),
        ("./evil.whl", "./evil.whl"),
        ("~/evil", "~/evil"),
        ("folder/evil", "folder/evil"),
        ("C:\\\\evil", "C:\\evil"),
        ("evil===http://example.org", "evil"),
        ("evil; python_version < '${KEY}'", "evil"),
        ("evil --index-url=https://example.org", "evil --index-url=https://example.org"),
        ("--index-url=https://example.org", "--index-url=https://example.org"),
    ],
)
def test_an_address_a_path_or_an_option_is_left_out_with_a_remark(given, name):
    found = read(
        pyproject=f'[project]\ndependencies = ["{given}", "six"]\n', **{"requirements/test.txt": "idna\n"}
    )
    assert (found.needed, found.tests) == (("six",), ("idna",))
    assert found.elsewhere == ((name, "an address, a path or an option"),)
    in_setup = read(py=f'setup(install_requires=["""{given}"""])')
    assert (in_setup.needed, in_setup.elsewhere) == ((), found.elsewhere)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('{ path = "../lib" }', "a folder"),
        ("{ workspace = true }", "a folder"),
        ('{ git = "https://example.org/lib" }', "an address"),
        ('{ url = "https://example.org/lib.whl" }', "an address"),
        ('{ index = "ours" }', "of another index"),
        ('[{ git = "https://example.org/lib", marker = "sys_platform == \'linux\'" }]', "an address"),
    ],
)
def test_what_uv_takes_from_elsewhere_is_not_looked_up(source, why):
    found = read(
        pyproject=f'[project]\ndependencies = ["Lib>=1", "six"]\n[dependency-groups]\ndev = ["lib"]\n'
        f"[tool.uv.sources]\nlib = {source}\n",
        **{"requirements-test.txt": "lib==2\n"},
    )
    assert (found.needed, found.tests, found.elsewhere) == (("six",), (), (("lib", why),))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('{ path = "../lib", develop = true }', "a folder"),
        ('{ file = "lib.whl" }', "a folder"),
        ('{ git = "https://example.org/lib", version = "1" }', "an address"),
        ('{ url = "https://example.org/lib.whl" }', "an address"),
        ('{ version = "^1", source = "ours" }', "of another index"),
        ('[{ path = "lib" }, { version = "1" }]', "a folder"),
    ],
)
@pytest.mark.parametrize("table", ["dependencies", "dev-dependencies", "group.test.dependencies"])
def test_what_poetry_takes_from_elsewhere_is_not_looked_up(source, why, table):
    found = read(pyproject=f'[tool.poetry.{table}]\nlib = {source}\nsix = "*"\n')
    assert ({*found.needed, *found.tests}, found.elsewhere) == ({"six"}, (("lib", why),))


MEMBER = '[project]\nname = "Lib_Page"\ndependencies = ["idna", "deep"]\n'
DEEP = "from setuptools import setup\nsetup(name='deep', install_requires=['six', 'lib-page'])\n"


@pytest.mark.parametrize(
    "declared",
    [
        '[project]\nname = "top"\ndependencies = ["lib-page>=2"]\n',
        '[project]\nname = "top"\ndependencies = ["lib.page @ file:///${PROJECT_ROOT}/packages/page"]\n',
        '[project]\ndependencies = ["lib-page"]\n[tool.uv.sources]\nlib-page = { git = "https://example.org" }\n',
        '[tool.poetry]\nname = "top"\n[tool.poetry.dependencies]\nlib-page = { path = "packages/page" }\n',
        '[project]\nname = "top"\n[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/old"]\n',
        '[tool.pdm.dev-dependencies]\ntest = ["-e file:///${PROJECT_ROOT}/packages/page#egg=lib-page"]\n',
        "requirements.txt",
    ],
)
def test_a_package_of_the_repository_is_imported_from_its_folder(declared):
    manifest = {"pyproject": declared} if "[" in declared else {declared: "-e ./packages/page[all]\n"}
    found = read(
        **manifest,
        **{
            "packages/page/pyproject.toml": MEMBER,
            "packages/page/src/lib_page/__init__.py": "",
            "vendor/deep/setup.py": DEEP,
            "vendor/six/setup.py": "setup(name=read_name())\n",
            "vendor/deep/deep.py": "",
            "packages/old/pyproject.toml": '[project]\nname = "old"\ndependencies = ["gone"]\n',
        },
    )
    assert {*found.needed, *found.tests} == {"idna"}
    assert found.roots == ("packages/page/src", "vendor/deep", "vendor/six", ".")
    assert (found.held, found.remark) == (("deep", "lib-page", "six"), "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "/tmp/elsewhere"\n'),
        ("pyproject.toml", "[dependency-groups]\ntest = 5\n"),
        ("pyproject.toml", f'[tool.poetry.dependencies]\nx = "^{"9" * 5000}"\n'),
        ("pyproject.toml", f"x = {'9' * 5000}\n"),
        ("setup.cfg", "[metadata]\nname = ../elsewhere\nversion\n[options]\ninstall_requires\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts\n"),
        ("setup.py", f"x = {'-' * 50_000}1\n"),
        ("setup.py", "setup(name='a/../../b')\n"),
        ("tox.ini", "[testenv]\ndeps\n"),
        ("requirements.txt", f"x; {'(' * 3000}python_version > '3'{')' * 3000}\n"),
    ],
)
def test_what_is_malformed_declares_nothing(name, text):
    declared = read_declarations({name: Entry(text.encode())})
    assert (declared.project, declared.needed, declared.tests) == ("", (), ())


def test_groups_that_include_each_other_many_times_are_read_once():
    groups = "".join(
        f'g{n} = [{{include-group = "g{n + 1}"}}, {{include-group = "g{n + 1}"}}]\n' for n in range(40)
    )
    text = f'[dependency-groups]\ntest = [{{include-group = "g0"}}]\n{groups}g40 = ["x"]\n'
    assert read_declarations({"pyproject.toml": Entry(text.encode())}).tests == ("x",)
