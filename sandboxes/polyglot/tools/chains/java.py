"""Java: ``javac`` and JUnit's console launcher over Debian's jars, no Gradle."""

from pathlib import Path

from exercise import Exercise, Outcome, Unusable, need

from chains.reports import junit

_JARS = Path("/usr/share/java")
_NEEDED = (
    "junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params",
    "junit-platform-commons", "junit-platform-console", "junit-platform-engine",
    "junit-platform-launcher", "junit-platform-reporting", "opentest4j", "apiguardian-api", "picocli",
    "univocity-parsers", "assertj-core",
)  # fmt: skip
_OPTIONAL = ("json-latest", "byte-buddy", "hamcrest")
_SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss16m")
_TESTS = Path("src/test/java")
_ENABLED = "junit.jupiter.conditions.deactivate=org.junit.*DisabledCondition"


def test(exercise: Exercise) -> Outcome:
    """Compiles everything below ``src`` and runs the classes of the test files."""
    need("javac", "java")
    path = ":".join([str(exercise.scratch / "classes"), *_class_path()])
    sources = sorted(str(each) for each in exercise.folder.glob("src/*/java/**/*.java"))
    compiling = ["javac", *(f"-J{option}" for option in _SMALL_JVM), "-nowarn", "-proc:none"]
    encoded = ["-encoding", "UTF-8", "-d", str(exercise.scratch / "classes"), "-cp", path]
    code, _ = exercise.run([*compiling, *encoded, *sources])
    if code:
        return Outcome(built=False)
    reports = exercise.scratch / "reports"
    launcher = ["org.junit.platform.console.ConsoleLauncher", "--disable-banner", "--disable-ansi-colors"]
    shown = ["--details=tree", "--fail-if-no-tests", f"--config={_ENABLED}", f"--reports-dir={reports}"]
    chosen = [f"--select-class={_class_name(name)}" for name in exercise.tests if name.endswith(".java")]
    code, _ = exercise.run(["java", *_SMALL_JVM, "-cp", path, *launcher, *shown, *chosen])
    outcome = junit(reports.glob("TEST-*.xml"))
    return outcome if code == 0 or outcome.failed else Outcome()


def _class_name(test: str) -> str:
    path = Path(test).with_suffix("")
    inside = path.relative_to(_TESTS) if _TESTS in path.parents else Path(path.name)
    return ".".join(inside.parts)


def _class_path() -> "list[str]":
    missing = [name for name in _NEEDED if not (_JARS / f"{name}.jar").exists()]
    if missing:
        raise Unusable(f"not installed here: {', '.join(missing)} in {_JARS}")
    jars = (_JARS / f"{name}.jar" for name in (*_NEEDED, *_OPTIONAL))
    return [str(jar) for jar in jars if jar.exists()]
