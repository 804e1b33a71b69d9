"""Builds the sdist and from it the wheel, installs that into an empty environment and uses what it ships.

The dependencies are those of the environment that runs this; only dgm itself comes from the wheel.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = (
    "dgm/_assets/archive/seeds/README.md",
    "dgm/_assets/archive/seeds/plain/agent/loop.py",
    "dgm/_assets/archive/seeds/codeact/agent/kernel.py",
    "dgm/_assets/archive/seeds/solid/agent.toml",
    "dgm/_assets/archive/presets/hgm.toml",
    "dgm/_assets/archive/seeds/solid/agent/loop.py",
    "dgm/_assets/archive/templates/shell/program/coder.py",
    "dgm/archive/empty.git/info/attributes",
    "dgm/archive/empty.git/refs/.keep",
    "dgm/_assets/archive/templates/check.py",
    "dgm/_assets/archive/templates/claude-code/.claude/settings.json",
    "dgm/_assets/sandboxes/python/sandbox.toml",
    "dgm/_assets/archive/example/example.dgm",
    "dgm/_assets/archive/example/real.dgm",
    "dgm/_assets/sandboxes/polyglot-rust/sandbox.toml",
    "dgm/_assets/benchmarks/starter/suite.toml",
    "dgm/_assets/benchmarks/polyglot/python/exercises/practice/toll-road/.meta/config.json",
    "dgm/meta/prompts/self-edit.md",
    "dgm/models/pricing.toml",
    "dgm/gateway/agent_start.py",
    "dgm/gateway/launcher.py",
    "dgm/py.typed",
)
PROBE = """
from dgm.meta.seeds import read_seed
from dgm.benchmarks.suites import suite_names
from dgm.models.pricing import Prices
from dgm.sandboxes import recipes
import dgm
print(dgm.__file__)
assert "agent.toml" in read_seed()
assert {"canaries", "probes", "starter"} <= {*suite_names()}
assert "python" in recipes.names()
assert Prices.load().rows
"""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """A command that must succeed; its output."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Builds, installs, probes."""
    with tempfile.TemporaryDirectory(prefix="dgm-wheel-") as scratch:
        built, home = Path(scratch) / "dist", Path(scratch) / "venv"
        run(sys.executable, "-m", "build", "--outdir", built, ROOT)
        wheel = next(built.glob("*.whl"))
        names = set(zipfile.ZipFile(wheel).namelist())
        missing = [name for name in SHIPPED if name not in names]
        extra = [name for name in names if "__pycache__" in name or name.startswith(("tests/", "archive/"))]
        if missing or extra:
            raise SystemExit(f"the wheel lacks {missing} and should not have {extra[:5]}")
        venv.create(home, with_pip=False, symlinks=True)
        python = home / "bin" / "python"
        site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
        theirs = run(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        (site / "dependencies.pth").write_text(theirs + "\n")
        where = run(python, "-c", PROBE, cwd=Path(scratch)).strip()
        assert where.startswith(str(site)), where
        version = run(python, "-m", "dgm", "--version", cwd=Path(scratch)).strip()
        print(
            f"{wheel.name}: {len(names)} files, {wheel.stat().st_size // 1024} kB; installed, {version} runs"
        )


if __name__ == "__main__":
    main()
