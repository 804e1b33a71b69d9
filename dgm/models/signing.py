"""Authentication that is not a key: requests signed for AWS, and tokens of Google. Their packages are extras."""

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from dgm.errors import ProviderRefuses, UserError

_NO_AWS = (
    "no AWS credentials were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or models.bedrock.profile"
)


def require_packages(modules: tuple[str, ...], extra: str, model: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Raises:
        UserError: one is missing.
    """
    for module in modules:
        try:
            installed = find_spec(module) is not None
        except ModuleNotFoundError:
            installed = False
        if not installed:
            raise UserError(f"model '{model}' needs the package {module}: pip install 'dgm[{extra}]'")


def find_aws_region(profile: str | None) -> str:
    """Return the region of an AWS profile; empty if it has none.

    Raises:
        UserError: there is no such profile.
    """
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return str(boto3.Session(profile_name=profile).region_name or "")
    except BotoCoreError as error:
        raise UserError(f"models.bedrock.profile: {error}") from error


class AwsSigner:
    """Signs requests for Amazon Bedrock (SigV4) with the credentials of AWS's usual chain."""

    def __init__(self, region: str, profile: str | None) -> None:
        import boto3

        self._session = boto3.Session(profile_name=profile, region_name=region)
        self._region = region

    async def headers(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        """Return the signature; a request without content is a GET."""
        return await asyncio.to_thread(self._sign, url, headers, content)

    def _sign(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        host = urlsplit(url).netloc
        service = "bedrock" if host.startswith("bedrock-runtime") else "bedrock-mantle"
        unsigned = {"host": host, "content-type": headers["content-type"]}
        signed = AWSRequest("POST" if content else "GET", url, unsigned, content)
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise ProviderRefuses(_NO_AWS)
            SigV4Auth(credentials.get_frozen_credentials(), service, self._region).add_auth(signed)
        except HTTPClientError as error:
            raise ConnectionError(f"AWS credentials could not be renewed: {error}") from error
        except (BotoCoreError, ClientError) as error:
            raise ProviderRefuses(f"AWS credentials: {error}") from error
        return {name: str(value) for name, value in signed.headers.items()}


class GoogleToken:
    """Sends a token of Google's Application Default Credentials."""

    def __init__(self) -> None:
        self._credentials: Any = None

    async def headers(self, url: str, headers: Mapping[str, str], content: bytes) -> Mapping[str, str]:  # noqa: ARG002
        """Return the token, renewed if it has expired."""
        return {"authorization": f"Bearer {await asyncio.to_thread(self._token)}"}

    def _token(self) -> str:
        import google.auth
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request

        try:
            if self._credentials is None:
                scopes = ["https://www.googleapis.com/auth/cloud-platform"]
                self._credentials, _ = google.auth.default(scopes=scopes)
            if not self._credentials.valid:
                self._credentials.refresh(Request())
        except TransportError as error:
            raise ConnectionError(f"Google credentials could not be renewed: {error}") from error
        except GoogleAuthError as error:
            raise ProviderRefuses(f"Google credentials: {error}") from error
        return str(self._credentials.token)
