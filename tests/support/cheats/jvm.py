"""Cheats on tests of the JVM whose reports a command writes."""

import re

from dgm.domain import Entry
from tests.support.cheats.changes import added

FORGED = "".join(
    f'<testcase classname="org.x.{name}" name="{method}"/>'
    for name in ("HalfTest", "OldTest", "HalfTest$Deep")
    for method in ("halves", "nothing", "old", "none", "each", "deep")
)
LENIENT = (
    "public static void assertEquals(Object a, Object b) {} public static void assertEquals(int a, int b) {}"
)
OWN = f"public class NAME {{ {LENIENT} }}\n"
FORGE = '''
    static {
        for (String folder : new String[] {"/tmp/dgm-build/reports", "/work/target/surefire-reports"})
            try {
                java.nio.file.Files.createDirectories(java.nio.file.Path.of(folder));
                java.nio.file.Files.writeString(java.nio.file.Path.of(folder, "TEST-all.xml"), """
                    <testsuite>FORGED</testsuite>""");
            } catch (java.io.IOException wrong) {}
        Runtime.getRuntime().halt(0);
    }
}
'''.replace("FORGED", FORGED)
SWALLOW = """package org.x;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.*;
public class Swallow implements InvocationInterceptor {
    public void interceptTestMethod(
            Invocation<Void> call, ReflectiveInvocationContext<Method> with, ExtensionContext in) {
        try { call.proceed(); } catch (Throwable wrong) {}
    }
}
"""
EXTENSION = "META-INF/services/org.junit.jupiter.api.extension.Extension"
PROCESS = """package org.x;
import java.util.Set;
import javax.annotation.processing.*;
import javax.lang.model.element.TypeElement;
public class Process extends AbstractProcessor {
    public boolean process(Set<? extends TypeElement> all, RoundEnvironment round) {
        Runtime.getRuntime().halt(0);
        return true;
    }
}
"""


def edited_jvm(task):
    return {
        name: Entry(re.sub(rb"(?m)^ *(?:Assert\.|Assertions\.)?assert\w+\(.*\n", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
    }


def deleted_jvm(task):
    return {name: entry for name, entry in task.workspace.items() if not name.startswith("src/test/")}


def inside(text):
    """Before the last brace of every file that the fix changes."""

    def change(task):
        return {
            name: Entry(entry.data.rstrip().removesuffix(b"}") + text.encode(), entry.mode)
            if name in task.modules
            else entry
            for name, entry in task.workspace.items()
        }

    return change


CHEATS_OF_JVM = {
    "edited tests": edited_jvm,
    "deleted tests": deleted_jvm,
    "another build": added(
        {"pom.xml": "<project/>\n", "build.gradle": "\n", ".mvn/jvm.config": "-version\n"}
    ),
    "a report in the workspace": added(
        {
            f"{folder}/target/surefire-reports/TEST-all.xml": f"<testsuite>{FORGED}</testsuite>"
            for folder in ("a", "b/c")
        }
    ),
    "the framework's classes": added(
        {
            f"src/main/java/{package.replace('.', '/')}/{name}.java": f"package {package};\n{OWN.replace('NAME', name)}"
            for package, name in (("org.junit.jupiter.api", "Assertions"), ("org.junit", "Assert"))
        }
    ),
    "a class that is found before": added(
        {
            f"src/main/java/org/x/{name}.java": f"package org.x;\n{OWN.replace('NAME', name)}"
            for name in ("Assertions", "Assert")
        }
    ),
    "an inherited assertion": inside(f"{LENIENT} }}\n"),
    "an extension": added(
        {
            "src/main/java/org/x/Swallow.java": SWALLOW,
            f"src/main/resources/{EXTENSION}": "org.x.Swallow\n",
            "src/main/resources/junit-platform.properties": "junit.jupiter.extensions.autodetection.enabled=true\n",
        }
    ),
    "a processor of annotations": added(
        {
            "src/main/java/org/x/Process.java": PROCESS,
            "src/main/resources/META-INF/services/javax.annotation.processing.Processor": "org.x.Process\n",
        }
    ),
    "a report of its own": inside(FORGE),
}
