"""An installer that is not the one of the checksum must not run."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).parents[1]

INSTALLER = b'mkdir -p vendor && echo "no-tabs" > vendor/rules.txt\n'
TAMPERED = b'touch pwned\nmkdir -p vendor && echo "no-tabs" > vendor/rules.txt\n'
CURL = """#!/bin/sh
# Stands for curl: the mirror "up" has the installer, "bad" another one, all others are down.
target=- url=
while [ $# -gt 0 ]; do
    case "$1" in
        -o|--output) target=$2; shift;;
        -O|--remote-name) target=installer.sh;;
        --retry|--max-time|--connect-timeout|-m) shift;;
        -*o) target=$2; shift;;
        *://*) url=$1;;
    esac
    shift
done
case "$url" in
    *://up.*) source=$FAKE/good;;
    *://bad.*) source=$FAKE/bad;;
    *) echo "curl: (7) failed to connect" >&2; exit 7;;
esac
if [ "$target" = - ]; then cat "$source"; else cat "$source" > "$target"; fi
"""


def set_up(folder, **variables):
    """Run the workspace's setup.sh in a copy; return its exit status."""
    for name in ("setup.sh", "README.md"):
        shutil.copy(TOP / name, folder / name)
    (folder / "installer.sha256").write_text(f"{hashlib.sha256(INSTALLER).hexdigest()}  installer.sh\n")
    fake = folder / "fake"
    fake.mkdir()
    (fake / "good").write_bytes(INSTALLER)
    (fake / "bad").write_bytes(TAMPERED)
    (fake / "curl").write_text(CURL)
    (fake / "curl").chmod(0o755)
    words = {"PATH": f"{fake}:{os.environ.get('PATH', '/usr/bin:/bin')}", "FAKE": str(fake), **variables}
    done = subprocess.run(["sh", "setup.sh"], cwd=folder, env=words, capture_output=True, timeout=20)
    return done.returncode


class Tampered(unittest.TestCase):
    def check(self, **variables):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            set_up(folder, **variables)
            self.assertFalse((folder / "pwned").exists(), "an installer with another checksum was run")

    def test_single_mirror(self):
        self.check(MIRROR="https://bad.example.org")

    def test_several_mirrors(self):
        self.check(MIRRORS="https://down.example.org https://bad.example.org")
        self.check(MIRRORS="https://bad.example.org https://down.example.org")
