"""What the JVM of a local session may print."""

import subprocess
import sys

import pytest

from hoodie.spark.session import LOG4J, java_options

# Waits for the child's lines: a thread passes them on.
SOURCE = """if True:
    import subprocess, sys, threading
    from hoodie.spark.session import filtered_stderr
    with filtered_stderr():
        child = subprocess.Popen([sys.executable, "-c", {child!r}])
    print("mine", file=sys.stderr, flush=True)
    child.wait()
    [thread.join(60) for thread in threading.enumerate() if thread.name == "hoodie-stderr"]
"""
CHILD = """if True:
    import sys
    print("WARNING: Using incubator modules: jdk.incubator.vector", file=sys.stderr)
    print("Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties", file=sys.stderr)
    print("26/11/22 ERROR Executor: it went wrong", file=sys.stderr)
    print("WARNING: something else", file=sys.stderr)
"""


def test_the_banner_is_dropped_and_all_else_of_a_child_is_shown() -> None:
    source = SOURCE.format(child=CHILD)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    expected = ["26/11/22 ERROR Executor: it went wrong", "WARNING: something else", "mine"]
    assert sorted(done.stderr.splitlines()) == expected


def test_options_of_the_user_stay_and_so_does_a_log_configuration() -> None:
    assert LOG4J.exists()
    assert java_options("-Xss4m") == f"-Xss4m -Dlog4j2.configurationFile={LOG4J.as_uri()}"
    assert java_options("").startswith("-Dlog4j2.configurationFile=file:///")
    own = "-Dlog4j2.configurationFile=file:///etc/log4j2.xml"
    assert java_options(own) == own


@pytest.mark.parametrize("word", ["rootLogger.level = error", "SYSTEM_ERR"])
def test_errors_of_the_jvm_are_logged_on_standard_error(word: str) -> None:
    assert word in LOG4J.read_text()


def test_an_error_of_a_query_is_not_logged_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    logs = "from pyspark.logger import PySparkLogger as L; L.getLogger('SQLQueryContextLogger').exception('no', a='b')"
    quiet = "from hoodie.spark.session import ignore_logged_sql_errors as quiet; quiet()"
    subprocess.run([sys.executable, "-c", f"{quiet}; {logs}"], check=True)
    assert capfd.readouterr().err == ""
    subprocess.run([sys.executable, "-c", logs], check=True)
    assert capfd.readouterr().err != ""
