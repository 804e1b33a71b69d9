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


class Mirrors(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def rules(self):
        file = self.folder / "vendor" / "rules.txt"
        return file.read_text() if file.exists() else ""

    def test_single_mirror(self):
        self.assertEqual((set_up(self.folder, MIRROR="https://up.example.org"), self.rules()), (0, "no-tabs\n"))

    def test_first_mirror(self):
        mirrors = "https://up.example.org https://down.example.org"
        self.assertEqual((set_up(self.folder, MIRRORS=mirrors), self.rules()), (0, "no-tabs\n"))

    def test_second_mirror(self):
        mirrors = "https://down.example.org https://up.example.org"
        self.assertEqual((set_up(self.folder, MIRRORS=mirrors), self.rules()), (0, "no-tabs\n"))

    def test_no_mirror(self):
        mirrors = "https://down.example.org https://down.example.net"
        self.assertNotEqual(set_up(self.folder, MIRRORS=mirrors), 0)
        self.assertEqual(self.rules(), "")
