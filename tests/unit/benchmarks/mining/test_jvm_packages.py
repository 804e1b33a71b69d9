"""Packages of a commit for the JVM, and how Maven finds them in a sandbox."""

import asyncio
from pathlib import Path

import pytest

from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.jvm_packages import (
    JvmEpochs,
    check_maven,
    digest_builds,
    tidy_repository,
    with_maven,
)
from dgm.benchmarks.mining.packages import SandboxPython
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Entry
from dgm.errors import UserError
from tests.support.folder_builder import FolderBuilder

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <artifactId>top</artifactId>
  <version>1.0</version>
  <description>All of it</description>
  <properties><revision>1</revision><junit>5.9</junit></properties>
  <dependencies>
    <dependency><groupId>org.junit</groupId><artifactId>junit</artifactId><version>5.9</version></dependency>
  </dependencies>
</project>
"""
CHILD = """\
<project>
  <parent><groupId>org.x</groupId><artifactId>top</artifactId><version>1.0</version></parent>
  <artifactId>child</artifactId>
</project>
"""
OWN = b"-T\n2\n"


def files(pom=POM, **more):
    texts = {"pom.xml": pom, "child/pom.xml": CHILD, **more}
    return {name: Entry(text.encode()) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<version>1.0</version>", "<version>1.1</version>"),
        ("All of it", "Some of it"),
        ("<revision>1<", "<revision>2<"),
        ("<dependencies>", "<!-- why -->\n<dependencies>"),
    ],
)
def test_what_no_build_depends_on_does_not_change_the_digest(old, new):
    changed = files(POM.replace(old, new), README="x") | {
        "child/pom.xml": Entry(CHILD.replace(old, new).encode())
    }
    assert digest_builds(changed) == digest_builds(files())


@pytest.mark.parametrize(
    "changed",
    [
        files(POM.replace("<version>5.9</version>", "<version>5.10</version>")),
        files(POM.replace("<junit>5.9<", "<junit>5.10<")),
        files(POM.replace("<dependency>", "<dependency><scope>test</scope>")),
        files("<!DOCTYPE project>" + POM),
        files(POM[:-5]),
        files(**{"lib/build.gradle.kts": "dependencies {}\n"}),
        files(**{"gradle/libs.versions.toml": "[versions]\n"}),
        files(**{"project/plugins.sbt": "addSbtPlugin()\n"}),
        files(**{".mvn/extensions.xml": "<extensions/>\n"}),
    ],
)
def test_what_a_build_declares_changes_the_digest(changed):
    assert digest_builds(changed) != digest_builds(files())


def test_builds_that_tests_only_read_do_not_change_the_digest():
    assert digest_builds(files(**{"src/it/one/pom.xml": POM})) == digest_builds(files())


def test_maven_is_told_where_its_repository_is_beside_what_it_is_told_already():
    text = "-o\n-Dmaven.repo.local=/opt/dgm-environment/m2\n"
    assert with_maven(files())[".mvn/maven.config"].data.decode() == text
    own = files() | {".mvn/maven.config": Entry(OWN, 0o100755)}
    assert with_maven(own)[".mvn/maven.config"] == Entry(OWN + text.encode(), 0o100755)
    other = {"build.gradle": Entry(b"")}
    assert with_maven(other) == other


def test_maven_without_packages_is_refused_with_the_command_that_fetches_them():
    with pytest.raises(UserError, match=r"^lib/pom\.xml: .* --setup 'mvn .*DGM_PACKAGES/m2"):
        check_maven(Path("lib"), files(), "", "")
    check_maven(Path("lib"), files(), "javac", "")
    check_maven(Path("lib"), files(), "", "mvn")
    check_maven(Path("lib"), {"build.gradle": Entry(b"")}, "", "")


def test_two_fillings_of_a_repository_are_made_alike(tmp_path):
    artifact = tmp_path / "org" / "x" / "a" / "1"
    artifact.mkdir(parents=True)
    for name in ("a-1.jar", "a-1.pom", "_remote.repositories", "b.pom.lastUpdated"):
        (artifact / name).write_text(name)
    about = artifact.parent / "maven-metadata-central.xml"
    about.write_text("<a><lastUpdated>20260102</lastUpdated></a>")
    kept = tmp_path / "kept.xml"
    kept.hardlink_to(about)
    (tmp_path / ".locks").mkdir()
    assert tidy_repository(tmp_path) == ("org.x:a:1",)
    assert sorted(path.name for path in artifact.iterdir()) == ["a-1.jar", "a-1.pom"]
    assert about.read_text() == "<a><lastUpdated>0</lastUpdated></a>"
    assert "20260102" in kept.read_text()
    assert not (tmp_path / ".locks").exists()


def test_a_repository_of_the_users_own_is_left_alone(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.lastUpdated").touch()
    (tmp_path / "m2").symlink_to(own)
    assert tidy_repository(tmp_path / "m2") == ()
    assert (own / "a.lastUpdated").exists()


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[ERROR] a test\n[ERROR] Failed to execute goal x:y: no z -> [Help 1]\n[ERROR] [Help 1] http://m\n",
            "x:y: no z$",
        ),
        ("[ERROR] [ERROR] Some\n[FATAL] No parent POM @ line 19\n", "3: No parent POM$"),
        ("* What went wrong:\nA problem.\n> Could not resolve x\n", "3: Could not resolve x$"),
        ("A.java:1: error: no symbol\n1 error\n", "3: error: no symbol$"),
        ("odd\n", "3: odd$"),
    ],
)
def test_a_setup_that_fails_is_told_by_the_builds_own_words(tmp_path, said, told):
    (tmp_path / "said").write_text(said)
    journal = MiningJournal(tmp_path / "journal.jsonl", {})
    setup = f"cat {tmp_path}/said; exit 3"
    epochs = JvmEpochs(None, tmp_path, SandboxPython("17", "x86_64"), journal, FolderBuilder(), setup)
    with pytest.raises(CannotInstall, match=told):
        asyncio.run(epochs.environment(files(), "2026-01-02"))
    journal.close()


def name_in(epochs, given):
    return asyncio.run(epochs.environment(given, "")).name


@pytest.mark.starts_processes
def test_environments_differ_by_what_commits_declare_only_where_a_setup_fills_them(tmp_path):
    journal = MiningJournal(tmp_path / "journal.jsonl", {})
    other = files(POM.replace("5.9", "5.10"))
    bare = JvmEpochs(None, tmp_path, SandboxPython("17", "x86_64"), journal, FolderBuilder())
    assert name_in(bare, files()) == name_in(bare, other)
    setup = 'grep -o "5.9\\|5.10" pom.xml > "$DGM_PACKAGES/version"'
    filled = JvmEpochs(None, tmp_path, SandboxPython("17", "x86_64"), journal, FolderBuilder(), setup)
    assert name_in(filled, files()) != name_in(filled, other)
    journal.close()
