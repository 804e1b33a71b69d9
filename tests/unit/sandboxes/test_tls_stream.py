"""A TLS stream of which one half can be closed."""

import asyncio
import socket
import ssl
import threading

import pytest

from dgm.sandboxes.tls_stream import open_tls
from tests.support.engine_forward import make_certificates, server_context

BEFORE, AFTER = 300_000, 3_000_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def client_context(folder) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.fixture
def server(certificates):
    """Starts a server that speaks, listens to the end of what the client says, then tells how much that was."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(context):
        try:
            with context.wrap_socket(listener.accept()[0], server_side=True) as one:
                one.sendall(bytes(BEFORE))
                came = 0
                while data := one.recv(65536):
                    came += len(data)
                one.sendall(bytes(AFTER) + str(came).encode())
        except OSError:
            pass

    def start(version=ssl.TLSVersion.TLSv1_3):
        context = server_context(certificates)
        context.maximum_version = version
        threading.Thread(target=serve, args=(context,), daemon=True).start()
        return listener.getsockname()[1]

    yield start
    listener.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_server_answers_after_the_client_has_closed_its_half(server, certificates, version):
    port = server(version)

    async def speak() -> bytes:
        reader, writer = await open_tls("127.0.0.1", port, client_context(certificates))
        writer.write(bytes(2_000_000))
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return said

    said = asyncio.run(speak())
    assert len(said) == BEFORE + AFTER + len("2000000")
    assert said.endswith(b"2000000")


def test_a_server_of_another_authority_is_refused(server, tmp_path):
    make_certificates(tmp_path)
    port = server()
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(open_tls("127.0.0.1", port, client_context(tmp_path)))


def test_a_server_of_another_name_is_refused(server, certificates):
    port = server()
    with pytest.raises(ssl.SSLCertVerificationError, match="localhost"):
        asyncio.run(open_tls("localhost", port, client_context(certificates)))
