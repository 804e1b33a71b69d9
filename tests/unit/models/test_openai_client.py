"""The client of both OpenAI protocols: its credentials, its patience, and the list of models."""

import subprocess
import sys

import httpx2
import openai
import pytest

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.models.dialect import Broken
from dgm.models.openai_chat import ChatDialect
from dgm.models.openai_client import open_client
from tests.unit.models.openai_chat_wire import GO, completion
from tests.unit.models.openai_mock import Server, check, page, talk, whole


def offers(*names):
    return whole({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def test_check_accepts_a_model_on_the_list():
    server = Server(offers("gpt-5.2", "gpt-5.2-mini"))
    check(ChatDialect(server.client(), "gpt-5.2", True, compatible=False))
    assert (server.requests[0].method, server.requests[0].url.path) == ("GET", "/v1/models")


@pytest.mark.parametrize("compatible", [False, True])
def test_check_names_what_is_offered_instead(compatible):
    server = Server(offers("gpt-5.2-mini", "gpt-5.2"))
    with pytest.raises(UserError, match=r"does not offer 'gpt-5\.1'; it offers: gpt-5\.2, gpt-5\.2-mini"):
        check(ChatDialect(server.client(compatible=compatible), "gpt-5.1", True, compatible))


@pytest.mark.parametrize("answer", [
    whole({"detail": "Not Found"}, 404), offers(), page("hello"), whole({"models": []}), offers("qwen3:latest"),
    offers("models/qwen3"),
])  # fmt: skip
def test_compatible_server_need_not_keep_a_list(answer):
    check(ChatDialect(Server(answer).client(compatible=True), "qwen3", True, compatible=True))


@pytest.mark.parametrize(("answer", "error"), [
    (whole({"error": {"message": "bad key"}}, 401), openai.AuthenticationError),
    (whole({}, 503), openai.InternalServerError),
    (httpx2.ConnectError("refused"), openai.APIConnectionError),
])  # fmt: skip
def test_check_of_a_compatible_server_still_finds_faults(answer, error):
    with pytest.raises(error):
        check(ChatDialect(Server(answer).client(compatible=True), "qwen3", True, compatible=True))


def test_openai_without_a_list_is_broken():
    with pytest.raises(Broken):
        check(ChatDialect(Server(page()).client(), "m", True, compatible=False))


def test_other_servers_never_get_openais_credentials(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "planted")
    server = Server(whole(completion({"content": "ok"})))
    talk(ChatDialect(server.client(compatible=True, key=""), "m", False, compatible=True), GO)
    assert "planted" not in str(server.requests[0].headers.raw)
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_client_waits_without_a_byte_as_long_as_the_settings_say():
    client = open_client(ProviderSettings(timeout_s=77), "sk-1")
    assert (client.max_retries, client.timeout.read, client.timeout.connect) == (0, 77, 30)


def test_package_is_imported_only_when_it_is_opened():
    code = (
        "import dgm.models.openai_chat, dgm.models.openai_responses, sys; sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
