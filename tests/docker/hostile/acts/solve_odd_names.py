"""Gives files names with newlines, escape sequences, quotes, undecodable bytes and options"""

import os

import task

for name in (
    b"new\nline",
    b"\x1b[2J\x1b[31mred\x1b[0m",
    b"\xff\xfe\x80",
    b"-rf",
    b'"quoted"',
    b"a\tb",
    b"diff --git a b",
    b"\x7f\x01",
    b"/dev/null"[1:].replace(b"/", b"\\"),
    b"..\\..\\up",
    "\u202egnp.exe".encode(),
    b" ",
    b"n" * 255,
    b"nul\r\n+++ b",
    b"CON",
):
    with open(os.path.join(os.fsencode(task.WORKDIR), name), "wb") as file:
        file.write(b"x\n")
