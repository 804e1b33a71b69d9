"""What is needed to make an image without a registry."""

import os

from dgm.sandboxes import bootstrap


def test_a_program_of_root_is_found_by_an_ordinary_user(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(bootstrap, "_FOLDERS_OF_ROOT", str(tmp_path))
    assert "is not installed" in bootstrap.obstacle()
    (tmp_path / "debootstrap").touch(mode=0o755)
    assert bootstrap.obstacle().startswith("debootstrap needs root")
