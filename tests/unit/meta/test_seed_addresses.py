"""Where a seed agent may come from, and what its address cannot do."""

import re
import subprocess

import pytest

from dgm.errors import UserError
from dgm.meta.seeds import read_seed

TOML = '[agent]\ncommand = ["python3", "a.py"]\ncheck = ["python3", "a.py"]\n'


@pytest.mark.parametrize(
    "where",
    [
        "ext::sh -c true",
        "ext::sh -c 'touch {}'",
        "fd::17",
        "http://localhost/agent",
        "ftp://localhost/agent",
        "EXT::sh",
        "file::/tmp",
    ],
)
def test_only_known_transports_are_taken(where):
    with pytest.raises(UserError, match=rf"^{re.escape(where)}: neither .* of https, ssh, git, file \("):
        read_seed(where)


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    "where", ["--upload-pack=touch {0}/canary", "-u touch {0}/canary", "{0}/nowhere", ""]
)
def test_an_address_is_never_an_option(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"neither a folder nor a git repository|not an agent"):
        read_seed(where.format(tmp_path))
    assert not (tmp_path / "canary").exists()


@pytest.mark.starts_processes
@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_repository_at_a_path_is_cloned(form, tmp_path):
    repo = tmp_path / "agent.git"
    work = tmp_path / "work"
    work.mkdir()
    (work / "agent.toml").write_text(TOML)
    (work / "link").symlink_to("/etc/hostname")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(work)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, repo], check=True, capture_output=True)
    source = read_seed(form.format(repo))
    assert source["agent.toml"].data == TOML.encode()
    assert source["link"].data == b"/etc/hostname"


@pytest.mark.starts_processes
def test_no_repository_around_a_folder_is_taken(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "HEAD").write_text("x")
    with pytest.raises(UserError, match="neither a folder nor a git repository"):
        read_seed(str(tmp_path / "inner"))


@pytest.mark.starts_processes
def test_a_null_character_is_one_line():
    with pytest.raises(UserError, match="null"):
        read_seed("a\0b")
