"""Our own evaluation script for an instance: patch, pristine tests, the test command between markers.

The package's scripts install the repository anew and expect root and a network; of those only what leads to the test
command and the command itself are taken. What the script says of itself stands under a nonce that comes by its
standard input and is gone before graded code runs, so that nothing which that code prints can pass for it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks import swebench_patches as patches
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError

START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_DROPPED = re.compile(r"\s*(?:git\s|set\s+[-+]|#|:\s|$)")
"""Of what stands before the tests: git's steps are done by us, options of the shell would end our script."""
_INSTALLS = re.compile(
    r"\b(?:pip3?|npm|pnpm|yarn|composer|apt|apt-get|conda|mamba|bundle|gem)\s+(?:-\S+\s+)*(?:install|ci|update|add)\b"
    r"|\bsetup\.py\s+(?:develop|install)\b|\blocale-gen\b"
)
"""Needs a network or root: the image has what they would bring."""
_COMPILED = re.compile(r"\.(?:pyx|pxd|pxi|c|cc|cpp|h|hpp|f|f90)$")
_SETS_UP = re.compile(r"\s*(?:cd|source|\.|export|conda|unset|echo|mkdir)\b")
"""Lines that run none of the repository's code."""

_ACTIVATE = (
    "if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate; conda activate testbed; fi"
)
_REBUILD = "if [ -f setup.py ]; then python setup.py build_ext --inplace; fi"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, in one bash."""

    before: Sequence[str]
    """Lines that set up the shell, and build what has to be built."""
    tests: Sequence[str]
    """Lines of the test command; the exit code of the last command counts."""
    installs: bool = False
    """The package would install the repository at this point: extensions may have to be compiled again."""

    @property
    def builds(self) -> bool:
        """Whether code of the repository runs before the tests."""
        return any(not _SETS_UP.match(line) for line in self.before if line != _ACTIVATE)


def from_command(command: str) -> Plan:
    """The plan of an instance that says its test command itself."""
    return Plan([_ACTIVATE], command.strip().split("\n"))


def from_script(script: str, instance: str) -> Plan:
    """The plan in an evaluation script of the package, or of an instance's row.

    Raises:
        UserError: there is no test command between markers in it.
    """
    before: list[str] = []
    tests: list[str] | None = None
    installs = False
    for line in _without_heredocs(script):
        if tests is not None and END in line:
            if not tests:
                break
            return Plan(before, tests, installs)
        if tests is not None:
            tests.append(line)
        elif START in line:
            tests = []
        elif _INSTALLS.search(line):
            installs = True
        elif not _DROPPED.match(line):
            before.append(line)
    raise UserError(f"{instance}: no test command between {START!r} and {END!r} in its eval_script")


def _without_heredocs(script: str) -> Iterator[str]:
    ending = None
    for line in script.split("\n"):
        if ending is not None:
            ending = None if line.strip() == ending else ending
        elif (found := _HEREDOC.search(line)) and line.lstrip().startswith("git"):
            ending = found[2]
        else:
            yield line


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one run of the script does."""

    workdir: str
    patch: bytes
    """Applied first; nothing is when it is empty."""
    test_patch: bytes
    restored: Sequence[str]
    """Files that are as they were before the patch when the test patch is applied."""
    timeout_s: float
    """For the build and the tests together."""


def luggage(plan: Plan, work: Assignment) -> Snapshot:
    """The files of the script, to be put into one folder of the sandbox; ``run.sh`` is started with its nonce."""
    before = list(plan.before)
    if plan.installs and any(_COMPILED.search(path) for path in patches.files(work.patch)):
        before.append(_REBUILD)
    texts = {
        "run.sh": _OUTER,
        "pack.sh": _PACK,
        "tests.sh": _INNER.format(before="\n".join(before), tests="\n".join(plan.tests)),
        "workdir": work.workdir,
        "seconds": f"{work.timeout_s:.0f}",
        "restored": "".join(f"{path}\n" for path in work.restored if "\n" not in path),
    }
    files = {name: Entry(text.encode("utf-8", "surrogateescape")) for name, text in texts.items()}
    return files | {
        APPLIER.name: Entry(APPLIER.read_bytes()),
        "model.patch": Entry(normalised_patch(work.patch).data),
        "tests.patch": Entry(normalised_patch(work.test_patch).data),
    }


_OUTER = r"""#!/bin/bash
# In braces: read as a whole before any of it runs, for graded code may write to this file.
{
IFS= read -r nonce
here=$(cd "$(dirname "$0")" && pwd)
workdir=$(cat "$here/workdir")
seconds=$(cat "$here/seconds")
base=$here/base
exec 2>&1

say() { printf '\n>>>>> %s %s\n' "$nonce" "$*"; }

# Outside of any repository: no configuration, attributes or hooks of the graded tree have a say.
apply() { GIT_DIR=/dev/null git apply --whitespace=nowarn "$1"; }
here_is() { [ -e "$1" ] || [ -L "$1" ]; }
first_line() { grep -v '^\s*$' "$1" | head -n 1 | cut -c 1-200; }

cd "$workdir" || { say broken "there is no folder $workdir in the image"; exit; }
command -v git >/dev/null || { say broken "there is no git in the image"; exit; }
say ready

while IFS= read -r path; do
    if here_is "$path"; then
        mkdir -p -- "$base/$(dirname -- "$path")" && cp -a -- "$path" "$base/$path"
    fi
done <"$here/restored"

if [ -s "$here/model.patch" ]; then
    came=$(python3 -I -B "$here/apply_patch.py" "$here/model.patch" "$workdir" 2>&1 | tail -n 1 | cut -c 1-400)
    case $came in
        applied*) say "$came" ;;
        refused*) say "$came"; exit ;;
        *) say broken "the patch could not be tried: $came"; exit ;;
    esac
fi

while IFS= read -r path; do
    rm -rf -- "$path"
    if here_is "$base/$path"; then
        mkdir -p -- "$(dirname -- "$path")" && cp -a -- "$base/$path" "$path" ||
            { say refused "it leaves no place for $path"; exit; }
    fi
done <"$here/restored"

if [ -s "$here/tests.patch" ] && ! apply "$here/tests.patch" 2>"$here/trouble"; then
    say unfit "$(first_line "$here/trouble")"
    exit
fi

say testing
before=" $(cd /proc && echo [0-9]*) "
exec > >(exec setsid bash "$here/pack.sh") 2>&1
packer=$!
SECONDS=0
printf '%s\n' "$nonce" | timeout -k 10 "$seconds" bash "$here/tests.sh"
code=${PIPESTATUS[1]}
late=
if { [ "$code" = 124 ] || [ "$code" = 137 ]; } && [ "$SECONDS" -ge "$seconds" ]; then
    late=yes
fi
# What the tests left running would hold the output open. The packer's processes are a session of their own, but for
# the first one of them when the tests end before it has begun that session.
for round in 1 2 3; do
    for process in /proc/[0-9]*; do
        process=${process#/proc/}
        case "$before$packer " in *" $process "*) continue ;; esac
        read -r stat <"/proc/$process/stat" || continue
        read -r _ _ _ session _ <<<"${stat##*) }"
        [ "$session" = "$packer" ] || kill -9 "$process"
    done
done 2>/dev/null
[ -z "$late" ] || say late "$seconds"
say end "$code"
exec >&- 2>&-
wait "$packer" || while kill -0 "$packer"; do sleep 0.05; done
exit 0
}
"""

_PACK = r"""#!/bin/bash
# Of a long output the beginning, lines that look like results, and the end; packed, for 100 MB pass through here.
{
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C
result=$'pass|fail|error|skip|(^|[^a-z])ok([^a-z]|$)|\\.\\.\\. |\xe2\x9c|\xe2\x88\x9a|\xc3\x97'
pack() { if command -v gzip >/dev/null; then exec gzip -1; else exec cat; fi; }
{
    head -c 24000000
    exec 4> >(exec tail -c 2000000 >"$here/end")
    end=$!
    tee /dev/fd/4 | grep -a -i -E "$result" 4>&- | grep -a -v '^>>>>> ' 4>&- | {
        exec 4>&-
        # The beginning may have stopped within a line.
        IFS= read -r first && printf '\n%s\n' "$first"
        head -c 8000000
        cat >/dev/null
    }
    exec 4>&-
    wait "$end" || while kill -0 "$end"; do sleep 0.05; done
    cat "$here/end"
} | pack
exit
}
"""

_INNER = r"""#!/bin/bash
{{
IFS= read -r nonce
exec </dev/null
cd "$(cat "$(dirname "$0")/workdir")"
{before}
# A locale that the image does not have means ASCII to the programs under test.
case ${{LC_ALL:-${{LANG:-}}}} in
    "" | C | POSIX | C.UTF-8 | C.utf8) ;;
    *) locale -a 2>/dev/null | tr -d - | grep -qix "$(printf %s "${{LC_ALL:-$LANG}}" | tr -d -)" ||
        {{ export LANG=C.UTF-8; unset LC_ALL LANGUAGE; }} ;;
esac
printf '\n>>>>> %s start\n' "$nonce"
unset nonce
set -o pipefail
{tests}
exit
}}
"""
