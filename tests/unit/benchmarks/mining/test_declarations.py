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
    [("^1.2.3", ">=1.2.3,<2"), ("^0.3", ">=0.3,<0.4"), ("~1.4", ">=1.4,<1.5"), ("1.0", "==1.0"), ("*", ""),
     (">=2,<3", ">=2,<3")],
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
        **{"requirements.txt": "idna==3.1 --hash=sha256:0\n-e .\nhttps://example.org/x.zip\n",
           "requirements/test.txt": "responses\n", "requirements/docs.txt": "furo\n"},
    )  # fmt: skip
    assert (found.version, found.needed, found.tests) == (
        "",
        ("idna==3.1", "six"),
        ("hypothesis<5", "mock", "responses"),
    )


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
