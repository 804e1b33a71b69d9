"""What a build knows of the user's settings, what it reports of its network, and what is kept of what it leaves."""

import asyncio
import io
import os

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import BuildError
from dgm.sandboxes.building import (
    SandboxBuilder,
    read_certificates,
    read_index_settings,
    unpack_result,
    without_passwords,
)
from dgm.sandboxes.building_inside import ENTRY, write_entries
from dgm.sandboxes.index_proxy import Place, place_of
from tests.support.each_engine import find_engine


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_an_index_that_cannot_be_reached_is_no_fault_of_what_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")

    async def build():
        builder = SandboxBuilder(find_engine("bubblewrap"), {"dgm.run": f"tests-{os.getpid()}"}, "python")
        async with builder.open() as room:
            await room.run(["uv", "pip", "install", "--target", "x", "tiny"], name="x", timeout_s=120)

    with pytest.raises(Infrastructure, match=r"index cannot be reached: 127\.0\.0\.1: Connect"):
        asyncio.run(build())


def entries(*members):
    packed = (ENTRY.pack(kind, len(name), len(data)) + name + data for kind, name, data in members)
    return io.BytesIO(b"".join(packed))


def test_only_files_and_inner_links_are_kept(tmp_path):
    stream = entries(
        (b"d", b"a", b""),
        (b"x", b"a/x", b"1"),
        (b"l", b"a/to-x", b"x"),
        (b"l", b"up", b".."),
        (b"d", b"up", b""),
        (b"f", b"up/planted", b"2"),
        (b"l", b"here", b"."),
        (b"l", b"out", b"here/.."),
        (b"l", b"etc", b"/etc"),
    )
    target = tmp_path / "in" / "target"
    unpack_result(stream, target)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    kept = {"a", "a/x", "a/to-x", "here", "up", "up/planted"}
    assert found == {"in", "in/target", *(f"in/target/{name}" for name in kept)}
    assert not (target / "up").is_symlink()
    assert (target / "a" / "x").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "data",
    [
        b"no such result" * 100,
        ENTRY.pack(b"f", 1, 1 << 62) + b"a",
        ENTRY.pack(b"f", 1, 9) + b"a12345678",
        ENTRY.pack(b"l", 1, 1 << 20) + b"a" + bytes(1 << 20),
        entries((b"f", b"../escaped", b"3")).getvalue(),
        entries((b"f", b"/absolute", b"4")).getvalue(),
        entries((b"f", b"no-such-folder/x", b"5")).getvalue(),
        entries((b"d", b"a", b""), (b"f", b"a", b"6")).getvalue(),
        entries(*((b"d", b"/".join([b"a"] * depth), b"") for depth in range(1, 200))).getvalue(),
    ],
)
def test_what_is_no_sound_result_is_refused(tmp_path, data):
    with pytest.raises(BuildError, match="what was installed"):
        unpack_result(io.BytesIO(data), tmp_path / "target")


def test_a_folder_arrives_as_it_was_but_for_what_is_no_file(tmp_path):
    source = tmp_path / "source"
    (source / "a" / "empty").mkdir(parents=True)
    (source / "a" / "program").write_bytes(b"1" * 3_000_000)
    (source / "a" / "program").chmod(0o700)
    (source / os.fsdecode(b"odd\xff")).write_bytes(b"")
    (source / "link").symlink_to("a")
    os.link(source / "a" / "program", source / "hard")
    os.mkfifo(source / "pipe")
    stream = io.BytesIO()
    write_entries(os.fsencode(source), stream)
    stream.seek(0)
    unpack_result(stream, tmp_path / "copy")
    (source / "pipe").unlink()
    names = sorted(path.relative_to(source) for path in source.rglob("*"))
    assert names == sorted(path.relative_to(tmp_path / "copy") for path in (tmp_path / "copy").rglob("*"))
    assert (tmp_path / "copy" / "hard").read_bytes() == (source / "hard").read_bytes()
    assert (tmp_path / "copy" / "link").readlink() == (source / "link").readlink()


OWN = "https://packages.example/simple"
PLACE = Place("packages.example", 443)
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"])
def test_an_index_holds_for_uv_and_for_pip(tmp_path, variable):
    found = read_index_settings("python", {variable: OWN, "OPENAI_API_KEY": "x"}, tmp_path)
    assert found.env == {"UV_DEFAULT_INDEX": OWN, "PIP_INDEX_URL": OWN}
    assert found.places == {PLACE}


def test_more_indexes_and_those_of_other_languages(tmp_path):
    given = {
        "PIP_EXTRA_INDEX_URL": f"{OWN} file:///home/packages http://127.0.0.1:8080/simple",
        "NPM_CONFIG_REGISTRY": "https://npm.example:4873/",
        "GOPROXY": "https://go.example,direct",
    }
    found = read_index_settings("npm", given, tmp_path)
    assert found.env["UV_INDEX"] == f"{OWN} http://127.0.0.1:8080/simple"
    assert found.env["GOPROXY"] == "https://go.example"
    places = {PLACE, Place("127.0.0.1", 8080), Place("npm.example", 4873), Place("go.example", 443)}
    assert found.places == places


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX"])
def test_an_index_of_uv_may_have_a_name(tmp_path, variable):
    found = read_index_settings("python", {variable: f"ours={OWN}"}, tmp_path)
    assert (found.env[variable], found.places) == (OWN, {PLACE})


def test_settings_files_give_indexes_alone(tmp_path):
    files = {
        ".config/pip/pip.conf": f"[global]\nindex-url = {OWN}\nclient-cert = secret.pem\n",
        ".npmrc": f"//r.example/:_authToken=secret\nregistry={OWN}\n@a:registry=https://a.example/npm/\n",
        ".m2/settings.xml": f"<settings><servers>secret</servers><mirrors><mirror><url>{OWN}</url></mirror></mirrors>",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for image in ("python", "npm", "jvm"):
        found = read_index_settings(image, {}, tmp_path)
        assert PLACE in found.places
        assert "secret" not in f"{found}"
    assert (
        read_index_settings("npm", {}, tmp_path).npmrc
        == f"registry={OWN}\n@a:registry=https://a.example/npm/\n"
    )
    assert read_index_settings("polyglot-go", {}, tmp_path).places == frozenset()


def test_folders_of_packages_are_shown(tmp_path):
    (tmp_path / "wheels").mkdir()
    given = {"PIP_FIND_LINKS": f"{tmp_path}/wheels {tmp_path}/gone https://pages.example/x.html"}
    found = read_index_settings("python", given, tmp_path / "nobody")
    (mount,) = found.mounts
    assert mount.source == tmp_path / "wheels"
    assert found.env["UV_FIND_LINKS"] == f"{mount.target},https://pages.example/x.html"
    assert found.env["PIP_FIND_LINKS"] == f"{mount.target} https://pages.example/x.html"
    assert found.places == {Place("pages.example", 443)}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_constraints_are_those_by_name(tmp_path, form):
    (tmp_path / "pins.txt").write_text("# why\ntiny==1.0\n-r /etc/passwd\nevil @ http://evil.example/x\n")
    given = {"PIP_CONSTRAINT": form.format(tmp_path / "pins.txt")}
    assert read_index_settings("python", given, tmp_path).constraints == b"tiny==1.0\n"


def test_only_certificates_are_taken_from_a_file(tmp_path):
    file = tmp_path / "bundle.pem"
    file.write_text(
        f"token = secret\n{PEM}\n-----BEGIN PRIVATE KEY-----\nMIIC\n-----END PRIVATE KEY-----\n{PEM}\n"
    )
    for variable in ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"):
        assert read_certificates({variable: str(file)}).decode() == f"{PEM}\n{PEM}\n"


@pytest.mark.parametrize("url", ["", "ftp://a/b", "https:///x", "packages.example"])
def test_what_leads_to_no_host_is_no_place(url):
    with pytest.raises(ValueError, match="leads to no host"):
        place_of(url)


def test_code_of_a_repository_sees_no_password_of_an_index(tmp_path):
    (tmp_path / ".npmrc").write_text("registry=https://me:secret@npm.example.org/\n")
    given = {
        "PIP_INDEX_URL": "https://user:secret@example.org/simple",
        "GOPROXY": f"https://secret@go.example.org,{OWN}",
    }
    found = read_index_settings("npm", given, tmp_path)
    assert "secret" in f"{found.env} {found.npmrc}"
    shown = without_passwords(found)
    assert "secret" not in f"{shown.env} {shown.npmrc}"
    assert (shown.env["PIP_INDEX_URL"], shown.places) == ("https://example.org/simple", found.places)
    assert shown.env["GOPROXY"] == f"https://go.example.org,{OWN}"
