"""What is needed to make an image without a registry."""

import os

import pytest

from dgm.sandboxes import bootstrap


def test_a_program_of_root_is_found_by_an_ordinary_user(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(bootstrap, "_FOLDERS_OF_ROOT", str(tmp_path))
    assert "is not installed" in bootstrap.obstacle()
    (tmp_path / "debootstrap").touch(mode=0o755)
    assert bootstrap.obstacle().startswith("debootstrap needs root")


@pytest.mark.starts_processes
def test_packages_are_set_up_without_variables_of_the_shell(tmp_path, monkeypatch):
    seen = tmp_path / "seen"
    for name in ("PYTHONWARNINGS", "PERL5LIB", "LD_LIBRARY_PATH", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "error")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    bootstrap._run(["sh", "-c", f"env > {seen}"])
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"LC_ALL", "PATH", "https_proxy"}
