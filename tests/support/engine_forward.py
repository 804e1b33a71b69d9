"""A socket of an engine passed on by TCP, with or without TLS, and a program ``ssh`` that passes it on itself."""

import contextlib
import datetime
import ipaddress
import selectors
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

SSH = """#!{python}
import os, socket, sys, threading

with open({log!r}, "a") as log:
    print(os.getpid(), *sys.argv[1:], file=log)
far = socket.socket(socket.AF_UNIX)
far.connect({path!r})


def send():
    while data := os.read(0, 65536):
        far.sendall(data)
    far.shutdown(socket.SHUT_WR)


threading.Thread(target=send, daemon=True).start()
while data := far.recv(65536):
    os.write(1, data)
os._exit(0)
"""
"""Program that does what ``ssh HOST docker system dial-stdio`` does: it passes a socket on by its input and output."""


@contextlib.contextmanager
def forward_tcp(path: str, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Pass connections to a port of this machine on to the socket at ``path``; yield the port. All end with it.

    Args:
        path: the socket.
        context: the encryption on the port's side.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []
        given = (listener, accepted, path, context)
        threading.Thread(target=_accept, args=given, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for near in accepted:
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket,
    accepted: list[socket.socket],
    path: str,
    context: ssl.SSLContext | None,
) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        accepted.append(near)
        threading.Thread(target=_serve, args=(near, path, context), daemon=True).start()


def _serve(near: socket.socket, path: str, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        opened.enter_context(near)
        far = opened.enter_context(socket.socket(socket.AF_UNIX))
        if context is not None:
            near = opened.enter_context(context.wrap_socket(near, server_side=True))
        far.connect(path)
        _copy(near, far)


def _copy(near: socket.socket, far: socket.socket) -> None:
    """Copy both ways in one thread, since a TLS socket is not for two; a closed half is passed on as one."""
    chosen = selectors.DefaultSelector()
    for one, other in ((near, far), (far, near)):
        chosen.register(one, selectors.EVENT_READ, other)
    while True:
        for key, _ in chosen.select():
            one, other = key.fileobj, key.data
            if data := _read_ready(one):
                other.sendall(data)
                continue
            chosen.unregister(one)
            if one is far:
                return
            far.shutdown(socket.SHUT_WR)


def _read_ready(one: socket.socket) -> bytes:
    data = one.recv(65536)
    while isinstance(one, ssl.SSLSocket) and one.pending():
        data += one.recv(one.pending())
    return data


def make_certificates(folder: Path, host: str = "127.0.0.1") -> None:
    """Write ``ca.pem``, and ``cert.pem`` and ``key.pem`` that it signed for ``host`` and for any client."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certify(subject: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> bytes:
        made = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
            )
            .sign(authority, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.pem").write_bytes(certify("authority", authority, is_authority=True))
    (folder / "cert.pem").write_bytes(certify("engine", own, is_authority=False))
    (folder / "key.pem").write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the encryption of a server that lets in clients of the authority alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def install_ssh(folder: Path, path: str) -> Path:
    """Write the program ``ssh`` into a folder, to be put on ``PATH``; return the file in which it notes its arguments.

    Args:
        folder: an existing folder.
        path: of the socket that it passes on, whatever host is named.
    """
    log, program = folder / "ssh.log", folder / "ssh"
    program.write_text(SSH.format(python=sys.executable, log=str(log), path=path), encoding="utf-8")
    program.chmod(0o755)
    return log
