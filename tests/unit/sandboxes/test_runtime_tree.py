"""The files of an agent's own image work below a folder beside another image's."""

import io
import struct
import tarfile

import pytest

from dgm.sandboxes.elf import Program, read_program
from dgm.sandboxes.runtime_tree import COMMANDS, FOLDER, RuntimeTree, drop_top

LOADER = "/lib64/ld-linux-x86-64.so.2"


def elf(loader=LOADER):
    """The head of a 64-bit program: its header, one segment, and the name of the loader, if it asks for one."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    name = loader.encode() + b"\0"
    segment = struct.pack("<IIQQQQQQ", 3 if loader else 1, 4, 120, 0, 0, len(name), len(name), 1)
    return ident + header + segment + name


def pack(*entries):
    """A tar stream of an image: (name, content or link, mode)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, what, mode in entries:
            header = tarfile.TarInfo(name)
            header.mode, header.uid = mode, 33
            if what is None:
                header.type = tarfile.DIRTYPE
            elif isinstance(what, str):
                header.type, header.linkname = tarfile.SYMTYPE, what
            else:
                header.size = len(what)
            archive.addfile(header, io.BytesIO(what if isinstance(what, bytes) else b""))
    data = stream.getvalue()
    return iter([data[at : at + 1000] for at in range(0, len(data), 1000)])


def rewrite(*entries, **given):
    data = b"".join(RuntimeTree(**given).rewrite(pack(*entries)))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isreg()}
        return {member.name: (member, files.get(member.name)) for member in archive}


def script(found, name):
    return found[f".dgm/bin/{name}"][1].read().decode()


IMAGE = (
    ("usr/bin", None, 0o755),
    ("usr/lib", None, 0o755),
    ("usr/lib/x86_64-linux-gnu", None, 0o755),
    ("bin", "usr/bin", 0o777),
    ("lib64", "usr/lib/x86_64-linux-gnu", 0o777),
    ("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", elf(""), 0o755),
    ("usr/bin/tool", elf(), 0o4755),
)


def test_a_program_is_started_by_the_loader_and_with_the_libraries_of_its_own_image():
    line = script(rewrite(*IMAGE), "tool").splitlines()[1]
    libraries = f"{FOLDER}/usr/lib/x86_64-linux-gnu"
    assert line.startswith(f"exec {libraries}/ld-linux-x86-64.so.2 --library-path {libraries}")
    assert line.endswith(f'--argv0 {COMMANDS}/tool {FOLDER}/usr/bin/tool "$@"')


def test_an_old_loader_is_not_told_a_name():
    old = [
        ("lib64", "usr/lib/x86_64-linux-gnu", 0o777),
        ("usr/lib/x86_64-linux-gnu/ld-2.31.so", elf(""), 0o755),
    ]
    link = ("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "ld-2.31.so", 0o777)
    assert "--argv0" not in script(rewrite(*IMAGE[:3], *old, link, IMAGE[-1]), "tool")


def test_a_static_program_is_started_as_it_is():
    found = rewrite(("agent", elf(""), 0o755), path=("/",))
    assert script(found, "agent") == f'#!/bin/sh\nexec {FOLDER}/agent "$@"\n'


def test_a_script_is_started_by_the_interpreter_of_its_own_image():
    found = rewrite(*IMAGE, ("usr/bin/run", b"#!/usr/bin/env tool\n", 0o755))
    assert script(found, "run") == f'#!/bin/sh\nexec {COMMANDS}/tool {FOLDER}/usr/bin/run "$@"\n'


def test_links_stay_in_the_tree_and_lead_to_commands():
    found = rewrite(
        *IMAGE,
        ("usr/bin/awk", "/etc/alternatives/awk", 0o777),
        ("etc/alternatives/awk", "/usr/bin/tool", 0o777),
        ("usr/bin/out", "../../../../../etc/passwd", 0o777),
    )
    assert found["usr/bin/awk"][0].linkname == "../../etc/alternatives/awk"
    assert found["usr/bin/out"][0].linkname == "../../etc/passwd"
    assert f"{FOLDER}/usr/bin/tool" in script(found, "awk")
    assert ".dgm/bin/out" not in found


def test_nothing_is_set_user_id_and_nothing_is_a_device_or_scratch():
    found = rewrite(*IMAGE, ("dev/null", b"", 0o666), ("tmp/x", b"", 0o644), ("../up", b"x", 0o600))
    assert (found["usr/bin/tool"][0].mode, found["usr/bin/tool"][0].uid) == (0o755, 0)
    assert not {"dev/null", "tmp/x"} & found.keys()
    assert found["up"][0].mode == 0o644


def test_a_python_finds_its_own_library():
    library = ("usr/lib/python3.11/os.py", b"", 0o644)
    packages = ("usr/local/lib/python3.11/dist-packages", None, 0o755)
    found = rewrite(library, packages, ("usr/lib/python3/dist-packages", None, 0o755))
    assert found[".dgm/lib/python3.11"][0].linkname == "../../usr/lib/python3.11"
    assert found[".dgm/lib/python3"][0].linkname == "../../usr/lib/python3"


def test_a_folder_of_an_image_is_unpacked_without_its_own_name():
    data = b"".join(drop_top(pack(("nodejs", None, 0o755), ("nodejs/a/b.js", b"x", 0o644))))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["a/b.js"]


@pytest.mark.parametrize(
    ("head", "program"),
    [
        (b"#!/bin/sh -e\n", Program(interpreter=("/bin/sh", "-e"))),
        (elf("/lib/ld-musl-x86_64.so.1"), Program(loader="/lib/ld-musl-x86_64.so.1")),
        (b"#!\n", None),
        (b"\x7fELF\x09" + bytes(100), None),
        (b"\x7fELF\x02\x01" + b"\xff" * 100, None),
        (b"text", None),
    ],
)
def test_the_head_of_a_file_says_how_it_starts(head, program):
    assert read_program(head) == program
