"""The connection to a Docker engine: one for the library's calls and for the streams of programs alike."""

import asyncio
import functools
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.engine_address import EngineAddress, TlsFiles, resolve_address
from dgm.sandboxes.engine_client import convert_engine_errors
from dgm.sandboxes.engine_facts import EngineFacts, read_facts
from dgm.sandboxes.ssh_forward import SshForward
from dgm.sandboxes.tls_stream import open_tls

if TYPE_CHECKING:
    from docker import DockerClient
    from requests.adapters import HTTPAdapter

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CONNECTS_WITHIN_S = 60.0
_ANSWERS_WITHIN_S = 10
_OLDEST_API = "1.40"
"""Version of the engine's interface in which its newest version is asked for."""


class EngineConnection:
    """A connection to one engine. A child process of it, where there is one, ends with this object."""

    def __init__(self, address: EngineAddress | None = None) -> None:
        """Connect to the engine at ``address``; by default, the one that the environment names.

        Raises:
            UserError: the address, or a file that it needs, is no good.
            Infrastructure: no engine answers there.
        """
        self.address = resolve_address() if address is None else address
        """The engine's address."""
        self._forward = SshForward(self.address) if self.address.scheme == "ssh" else None
        self._tls = _make_context(self.address)
        self.ensure()
        self._version = self._ask_version()
        self.client = self._make_client(str(self._version["ApiVersion"]))
        """The library's client of the engine, whose calls block."""

    @functools.cached_property
    def facts(self) -> EngineFacts:
        """The engine as it describes itself; the first access blocks.

        Raises:
            Infrastructure: it does not answer any more.
        """
        with convert_engine_errors("ask the engine what it is"):
            return read_facts(self._version, self.client.info())

    def ensure(self) -> None:
        """Connect again if a child process of the connection ended; blocks.

        Raises:
            Infrastructure: that is not possible.
        """
        if self._forward is not None:
            self._forward.ensure()

    def check_answers(self) -> None:
        """Make sure that the engine answers; blocks.

        Raises:
            Infrastructure: it does not.
        """
        import docker
        import requests

        self.ensure()
        api = self.client.api
        try:
            api.get(f"{api.base_url}/_ping", timeout=_ANSWERS_WITHIN_S).raise_for_status()
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise self._silence(error) from error

    async def open_streams(self) -> Streams:
        """Return new streams to the engine; ``write_eof`` closes the half to the engine alone.

        Raises:
            Infrastructure: the engine does not answer.
        """
        try:
            async with asyncio.timeout(_CONNECTS_WITHIN_S):
                return await self._open_streams()
        except (OSError, TimeoutError) as error:
            raise Infrastructure(f"no Docker engine answers at {self.address}: {error}") from error

    def close(self) -> None:
        """End the connection; the second call does nothing."""
        self.client.close()
        if self._forward is not None:
            self._forward.close()

    async def _open_streams(self) -> Streams:
        address = self.address
        if self._forward is not None:
            await asyncio.to_thread(self._forward.ensure)
            return await asyncio.open_unix_connection(self._forward.socket)
        if address.scheme == "unix":
            return await asyncio.open_unix_connection(address.path)
        if self._tls is not None:
            return await open_tls(address.host, address.port, self._tls)
        return await asyncio.open_connection(address.host, address.port)

    def _ask_version(self) -> Mapping[str, Any]:
        import docker
        import requests

        try:
            client = self._make_client(_OLDEST_API)
            try:
                answer: Mapping[str, Any] = client.version(api_version=False)
            finally:
                client.close()
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise self._silence(error) from error
        if not isinstance(answer, dict) or "ApiVersion" not in answer:
            raise Infrastructure(f"{self.address}: what answers there is no Docker engine")
        return answer

    def _silence(self, error: Exception) -> Infrastructure:
        return Infrastructure(
            f"no Docker engine answers at {self.address} ({_reason_of(error)}): start it, or install one"
        )

    def _make_client(self, version: str) -> "DockerClient":
        import docker

        address = self.address
        tls: Any = False
        if address.tls is not None:
            files = address.tls
            pair = (str(files.certificate), str(files.key)) if files.certificate and files.key else None
            tls = docker.tls.TLSConfig(pair, str(files.ca) if files.ca else None, files.verify)
        if self._forward is not None:
            local = replace(address, scheme="unix", path=str(self._forward.socket))
            client = docker.DockerClient(local.url, version=version)
        else:
            client = docker.DockerClient(address.url, version=version, tls=tls)
            if (context := _make_context(address)) is not None:
                client.api.mount("https://", _make_adapter(context))
        # Else proxies of the environment would be asked for the engine, but not for the streams of its programs.
        client.api.trust_env = False
        return client


def _reason_of(error: BaseException) -> str:
    """Return the message of the error at the bottom, without what the libraries wrapped around it."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error)


def _make_context(address: EngineAddress) -> ssl.SSLContext | None:
    """Return the encryption of the streams.

    Raises:
        UserError: a certificate or key cannot be used.
    """
    files = address.tls
    if files is None:
        return None
    try:
        context = ssl.create_default_context(cafile=files.ca)
        # Python 3.13 refuses certificates without a key identifier by default; Docker takes them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if files.certificate and files.key:
            context.load_cert_chain(files.certificate, files.key)
    except (OSError, ValueError) as error:
        raise UserError(f"{address}: {_name_files(files)} cannot be used: {error}") from error
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _make_adapter(context: ssl.SSLContext) -> "HTTPAdapter":
    """Return what lets the library's calls use an encryption of ours; it changes the context."""
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        """An adapter whose connections share a context."""

        def init_poolmanager(self, *given: Any, **more: Any) -> None:  # noqa: ANN401  (the library's)
            super().init_poolmanager(*given, ssl_context=context, **more)

    return Adapter()


def _name_files(files: TlsFiles) -> str:
    return ", ".join(str(file) for file in (files.ca, files.certificate, files.key) if file)
