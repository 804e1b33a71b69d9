"""A workspace as it is laid out before a command writes reports of its tests."""

import base64
import json
import zlib

import pytest

from dgm.benchmarks import report_runner

START = {
    "src/main/java/x/A.java": "package x;\nclass A {}\n",
    "lib/a.jar": "old",
    "src/main/resources/a.xml": "<a/>",
}


@pytest.fixture
def lay_out(tmp_path, monkeypatch):
    """Returns a function that lays a patch's files and links over those of the start."""
    for name, value in (*report_runner.SETTINGS.items(), ("TMPDIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(report_runner, "BUILD", str(tmp_path / "build"))

    def write(root, files):
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text[3:])
            else:
                path.write_text(text)

    def begin(files):
        write(tmp_path / "job" / "start", START)
        write(tmp_path / "work", {**START, **files})
        tool = {"command": "", "reports": ["**/*.xml"], "env": [], "parts": []}
        task = {"tests": [], "restored": ["*Test.java"], "deleted": [], "tool": tool}
        run = report_runner.ReportRun(task, tmp_path / "work")
        run.lay_out(tmp_path / "job")
        return tmp_path / "work", run

    return begin


def test_compiled_classes_and_archives_are_put_back(lay_out):
    work, run = lay_out({"lib/a.jar": "new", "lib/B.JAR": "new", "src/main/resources/junit/A.class": "new"})
    assert not run.record()["problem"]
    assert (work / "lib/a.jar").read_text() == "old"
    assert not (work / "lib/B.JAR").exists()
    assert not (work / "src/main/resources/junit/A.class").exists()


def test_files_that_stay_as_they_are_no_reports(lay_out):
    work, run = lay_out({"reports/old.xml": "<old/>", "reports/again.xml": "<old/>"})
    (work / "reports/new.xml").write_text("<new/>")
    (work / "reports/again.xml").write_text("<again/>")
    reports = json.loads(zlib.decompress(base64.b64decode(run.record()["reports"])))
    assert sorted(reports) == ["<again/>", "<new/>"]
    assert (work / "src/main/resources/a.xml").read_text() == "<a/>"
