"""Azure, Bedrock and Vertex as their servers see them: path, query and authentication."""

import json
import re

import pytest

from dgm.errors import ProviderRefuses, UserError
from dgm.messages import WireProtocol
from tests.support.models.connecting import KEY, clear_environment, connect, post
from tests.support.models.recording_server import recording, said

pytestmark = pytest.mark.slow

CHAT = {"model": "deploy", "messages": [{"role": "user", "content": "hi"}]}
CLAUDE = "anthropic.claude-sonnet-5-v1:0"
MESSAGES = {"model": CLAUDE, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=AKIATEST/\d{8}/eu-test-1/([a-z-]+)/aws4_request, ")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    clear_environment(monkeypatch)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))


def refused(name, **sections):
    with pytest.raises(UserError) as caught:
        connect(name, **sections)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Azure


def azure(url, **settings):
    return {"azure": {"base_url": url, **settings}}


@pytest.mark.parametrize("base", ["", "/openai/v1/", "/openai/deployments/x/chat/completions"])
def test_azure_is_asked_by_the_api_without_versions(monkeypatch, base):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    with recording(lambda _: said({})) as (url, asked):
        connection = connect("azure/deploy", **azure(url + base))
        post(connection, "/chat/completions", CHAT)
    assert asked[0].target == "/openai/v1/chat/completions"
    assert asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "openai-organization" not in asked[0].headers
    assert connection.secrets == (KEY,)
    assert connection.list_path == ""


@pytest.mark.parametrize("base", ["", "/anthropic", "/anthropic/v1/messages"])
def test_claude_at_azure_is_asked_at_foundry(monkeypatch, base):
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_API_KEY", KEY)
    with recording(lambda _: said({})) as (url, asked):
        connection = connect("azure/claude-opus", **azure(url + base))
        assert connection.protocol is WireProtocol.MESSAGES
        post(connection, "/messages", MESSAGES)
    assert asked[0].target == "/anthropic/v1/messages"
    assert asked[0].headers["x-api-key"] == KEY
    assert asked[0].body == MESSAGES


def test_azure_says_what_is_missing(monkeypatch):
    assert "providers.azure.base_url is not set" in refused("azure/deploy")
    assert "providers.azure.base_url is not set" in refused("azure/claude-opus")
    assert refused("azure/deploy", **azure("https://r.openai.azure.com")).startswith(
        "AZURE_OPENAI_API_KEY is not set"
    )
    assert refused("azure/claude-opus", **azure("https://r.example")).startswith(
        "AZURE_OPENAI_API_KEY is not set"
    )


# Bedrock


@pytest.fixture
def aws(monkeypatch):
    pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_REGION", "eu-test-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-secret-0123456789")


def test_claude_at_bedrock_is_asked_by_messages_and_signed(aws):
    with recording(lambda _: said({"type": "message"})) as (url, asked):
        connection = connect(f"bedrock/{CLAUDE}", bedrock={"base_url": url})
        assert connection.protocol is WireProtocol.MESSAGES
        response = post(connection, "/messages", MESSAGES, headers={"anthropic-beta": "a-1,b-2"})
    assert response.json() == {"type": "message"}
    assert asked[0].path == "/v1/messages"
    assert SIGNED.match(asked[0].headers["authorization"])[1] == "bedrock-mantle"
    assert "x-api-key" not in asked[0].headers
    assert asked[0].headers["anthropic-beta"] == "a-1,b-2"
    assert asked[0].body == MESSAGES
    assert "aws-secret-0123456789" in connection.secrets


def test_the_signature_is_one_that_aws_accepts(aws):
    """The server signs what it received with the same secret, and compares."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    with recording(lambda _: said({})) as (url, asked):
        post(connect("bedrock/openai.gpt-oss", bedrock={"base_url": url}), "/chat/completions", CHAT)
    (one,) = asked
    names = re.search(r"SignedHeaders=([^,]+)", one.headers["authorization"])[1].split(";")
    assert {"host", "x-amz-date"} <= set(names)
    again = AWSRequest(one.method, url + one.target, {name: one.headers[name] for name in names}, one.content)
    again.context["timestamp"] = one.headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIATEST", "aws-secret-0123456789"), "bedrock-mantle", "eu-test-1")
    signature = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    assert one.headers["authorization"].endswith(f"Signature={signature}")


def test_addresses_at_bedrock_follow_from_the_region(aws):
    assert connect(f"bedrock/{CLAUDE}").base_url == "https://bedrock-mantle.eu-test-1.api.aws/anthropic"
    other = connect("bedrock/openai.gpt-oss", bedrock={"region": "us-east-1"})
    assert other.base_url == "https://bedrock-mantle.us-east-1.api.aws/openai/v1"
    responses = connect("bedrock/openai.gpt-oss", bedrock={"api": "responses"})
    assert responses.base_url == "https://bedrock-mantle.eu-test-1.api.aws/openai/v1"


def test_bearer_token_of_bedrock_is_used_first(aws, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-bearer-0123")
    with recording(lambda _: said({})) as (url, asked):
        for name, path in ((CLAUDE, "/messages"), ("openai.gpt-oss", "/chat/completions")):
            connection = connect(f"bedrock/{name}", bedrock={"base_url": url})
            assert connection.key_env == "AWS_BEARER_TOKEN_BEDROCK"
            post(connection, path, {**MESSAGES, "model": name})
    assert [one.headers["authorization"] for one in asked] == ["Bearer bedrock-bearer-0123"] * 2


def test_bedrock_says_what_is_missing(monkeypatch):
    pytest.importorskip("boto3")
    assert "providers.bedrock.region" in refused(f"bedrock/{CLAUDE}")
    assert "providers.bedrock.region" in refused("bedrock/openai.gpt-oss")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "nobody" in refused(f"bedrock/{CLAUDE}", bedrock={"region": "r"})
    monkeypatch.delenv("AWS_PROFILE")
    with recording(lambda _: said({})) as (url, asked):
        # A region of its own: the package keeps the credentials that it found for one.
        here = {"base_url": url, "region": "eu-other-2"}
        for name, path in ((CLAUDE, "/messages"), ("openai.gpt-oss", "/chat/completions")):
            with pytest.raises(ProviderRefuses, match="credentials"):
                post(connect(f"bedrock/{name}", bedrock=here), path, {**MESSAGES, "model": name})
    assert asked == []


# Vertex


@pytest.fixture
def google(monkeypatch, tmp_path):
    """A service account whose tokens a server of ours gives."""
    pytest.importorskip("google.auth")
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    token = {"access_token": "google-token-123", "expires_in": 3600, "token_type": "Bearer"}
    with recording(lambda _: said(token)) as (url, asked):
        account = {
            "type": "service_account",
            "project_id": "of-the-account",
            "private_key_id": "k",
            "private_key": pem,
            "client_email": "a@b.example",
            "token_uri": f"{url}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        yield asked


def vertex(url):
    return {"vertex": {"base_url": url, "project": "p-1", "region": "europe-west1"}}


@pytest.mark.parametrize(("stream", "method"), [(False, "rawPredict"), (True, "streamRawPredict")])
def test_claude_at_vertex_is_asked_by_its_own_path(google, stream, method):
    body = {**MESSAGES, "model": "claude-opus@20260101", "stream": stream}
    with recording(lambda _: said({})) as (url, asked):
        connection = connect("vertex/claude-opus@20260101", **vertex(f"{url}/v1"))
        assert connection.protocol is WireProtocol.MESSAGES
        post(connection, "/messages", body)
    place = "/v1/projects/p-1/locations/europe-west1/publishers/anthropic/models/claude-opus@20260101"
    assert asked[0].path == f"{place}:{method}"
    assert asked[0].headers["authorization"] == "Bearer google-token-123"
    assert asked[0].body["messages"] == MESSAGES["messages"]
    assert asked[0].body["anthropic_version"]
    assert len(google) == 1


def test_gemini_at_vertex_is_asked_by_chat(google):
    with recording(lambda _: said({})) as (url, asked):
        connection = connect("vertex/google/gemini-4-pro", **vertex(f"{url}/v1/openapi"))
        assert connection.protocol is WireProtocol.CHAT
        post(connection, "/chat/completions", CHAT)
    assert asked[0].target == "/v1/openapi/chat/completions"
    assert asked[0].headers["authorization"] == "Bearer google-token-123"
    assert asked[0].body == CHAT


def test_addresses_at_vertex_follow_from_project_and_region(google):
    own = {"vertex": {"project": "p-1", "region": "europe-west1"}}
    place = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west1"
    assert connect("vertex/google/gemini-4-pro", **own).base_url == f"{place}/endpoints/openapi"
    assert connect("vertex/gpt-6", **own).base_url == f"{place}/publishers/openai/v1"
    assert connect("vertex/gpt-6", **own).protocol is WireProtocol.RESPONSES


def test_vertex_says_what_is_missing(monkeypatch, tmp_path):
    pytest.importorskip("google.auth")
    assert "providers.vertex.project (or " in refused("vertex/claude-opus")
    assert "providers.vertex.region (or " in refused("vertex/claude-opus", vertex={"project": "p"})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "away.json"))
    with recording(lambda _: said({})) as (url, asked):
        for name, path in (("claude-opus", "/messages"), ("google/gemini", "/chat/completions")):
            with pytest.raises(ProviderRefuses, match="Google"):
                post(connect(f"vertex/{name}", **vertex(url)), path, {**MESSAGES, "model": name})
    assert asked == []
