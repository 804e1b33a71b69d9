"""Of a user's settings a build gets the package indexes, and of a file of certificates the certificates."""

import pytest

from dgm.sandboxes.building import read_certificates, read_index_settings
from dgm.sandboxes.index_proxy import Place, place_of

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


def test_an_index_with_a_name_is_one(tmp_path):
    found = read_index_settings("python", {"UV_INDEX": f"own={OWN}"}, tmp_path)
    assert (found.env["UV_INDEX"], found.places) == (OWN, {PLACE})


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
