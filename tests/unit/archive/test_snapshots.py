import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.snapshots import FILE, LINK, PROGRAM, from_folder, to_tar, write_folder
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, UserError

STRANGE: Snapshot = {
    "a/b/c.py": Entry(b"print()\n"),
    "run.sh": Entry(b"#!/bin/sh\n", PROGRAM),
    "line\nbreak \x1b[31mred": Entry(b"\x00\xff"),
    "not utf-8 \udcff\udcfe": Entry(b""),
    "outside": Entry(b"../../../etc/passwd", LINK),
    "long/" + "n" * 120 + "/" + "m" * 120: Entry(b"deep"),
}


def read_tar(data: bytes) -> Snapshot:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            mode = PROGRAM if member.mode & 0o100 else FILE
            files[member.name] = (
                Entry(content.read(), mode) if content else Entry(os.fsencode(member.linkname), LINK)
            )
    return files


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)
parts = names.filter(lambda part: part not in (".", ".."))
entries = st.builds(Entry, st.binary(max_size=50), st.sampled_from([FILE, PROGRAM]))


@given(st.dictionaries(parts, entries, max_size=6), parts)
@settings(max_examples=30, deadline=None)
def test_any_snapshot_survives_a_tar_whose_bytes_depend_on_nothing_else(files: Snapshot, folder: str) -> None:
    files = {**STRANGE, **{f"in {folder}/{name}": entry for name, entry in files.items()}}
    assert read_tar(to_tar(files)) == files
    assert to_tar(dict(reversed(files.items()))) == to_tar(files)


def test_strange_names_and_links_survive_a_folder(tmp_path: Path) -> None:
    write_folder(STRANGE, tmp_path / "out")
    assert from_folder(tmp_path / "out") == STRANGE
    modes = [(tmp_path / "out" / name).stat().st_mode for name in ("a/b/c.py", "run.sh")]
    assert [stat.S_IMODE(mode) & 0o700 for mode in modes] == [0o600, 0o700]


def test_folder_is_read_without_caches_git_or_what_links_lead_to(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden")
    agent = tmp_path / "agent"
    for name in ("pkg/__pycache__/x.pyc", ".git/config", "main.py"):
        (agent / name).parent.mkdir(parents=True, exist_ok=True)
        (agent / name).write_text("x")
    (agent / "link").symlink_to(secret)
    os.mkfifo(agent / "pipe")
    assert from_folder(agent) == {"main.py": Entry(b"x"), "link": Entry(os.fsencode(secret), LINK)}
    (agent / "big").write_bytes(b"x" * 2000)
    with pytest.raises(AgentFault, match="more than 1000 bytes"):
        from_folder(agent, limit_bytes=1000)
    with pytest.raises(UserError, match="not a folder"):
        from_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["", "/x", "../x", "a//b", "a/./b", "a/\0"])
def test_unusable_names_are_never_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="not the name of a file"):
        write_folder({name: Entry(b"")}, tmp_path)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (outside / "file").write_text("kept")
    (target / "folder").symlink_to(outside)
    (target / "file").symlink_to(outside / "file")
    with pytest.raises(UserError, match="through a link"):
        write_folder({"folder/new": Entry(b"evil")}, target)
    write_folder({"file": Entry(b"mine")}, target)
    assert (outside / "file").read_text() == "kept"
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert not (target / "file").is_symlink()


def test_names_that_differ_by_case_are_two_files_where_the_disk_says_so(tmp_path, monkeypatch):
    files = {"A": Entry(b"1"), "a": Entry(b"2")}
    for _ in range(2):
        write_folder(files, tmp_path)
        assert [(tmp_path / name).read_bytes() for name in files] == [b"1", b"2"]
    real = os.stat

    def blind(path, **options):
        """A disk that takes a small letter for a capital one."""
        return real(path.upper() if isinstance(path, str) else path, **options)

    monkeypatch.setattr(os, "stat", blind)
    with pytest.raises(UserError, match=r"takes 'A' and 'a' for one file"):
        write_folder(files, tmp_path)
