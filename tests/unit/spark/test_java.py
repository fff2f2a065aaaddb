"""Which Java a session takes, with small scripts in its place."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import pytest

from hoodie.errors import JavaNotFound
from hoodie.spark import java

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for Java are shell scripts")


def fake_java(home: Path, version: str, exit_code: int = 0) -> Path:
    """A JAVA_HOME whose java tells its version, and for anything else its arguments, one a line."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit {exit_code}; }}\n'
        "printf '%s\\n' \"$@\"\n"
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sh").symlink_to(shell)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(java, "_bundled_java", lambda: None)


def put_on_path(home: Path, tmp_path: Path) -> None:
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")


@pytest.mark.parametrize(
    ("told", "major"), [("17.0.15", 17), ("25", 25), ("21-ea", 21), ("1.8.0_292", 8), ("11.0.2", 11)]
)
def test_the_major_version_is_read_from_old_and_new_numbering(tmp_path: Path, told: str, major: int) -> None:
    assert java.java_version(fake_java(tmp_path / "home", told) / "bin" / "java") == major


def test_a_java_that_fails_or_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(tmp_path / "none") is None
    assert java.java_version(fake_java(tmp_path / "stub", "17.0.1", exit_code=1) / "bin" / "java") is None


def test_a_java_home_that_will_do_is_taken_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    put_on_path(fake_java(tmp_path / "other", "21.0.1"), tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.ensure_java() == str(home)
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_home_too_old_gives_way_to_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0_292")))
    put_on_path(fake_java(tmp_path / "other", "21.0.1"), tmp_path)
    assert java.ensure_java() is None
    assert "JAVA_HOME" not in os.environ


def test_without_any_java_the_error_tells_what_was_seen_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(JavaNotFound, match=r"has Java 11.*hoodie\[java\].*openjdk-17"):
        java.ensure_java()


def test_the_bundled_java_runs_without_the_module_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = fake_java(tmp_path / "it's a wheel", "25.0.2") / "bin" / "java"
    monkeypatch.setattr(java, "_bundled_java", lambda: bundled)
    home = java.ensure_java()
    assert home == os.environ["JAVA_HOME"]
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a  b", "", "*", "Main"]
    told = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True).stdout
    assert told == "-Xmx1g\n-Dx=a  b\n\n*\nMain\n"


def test_the_launcher_is_made_once_however_many_ask_at_once(tmp_path: Path) -> None:
    bundled = fake_java(tmp_path / "wheel", "25.0.2") / "bin" / "java"
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java.shim_home(bundled), range(16)))
    (home,) = homes
    (launcher,) = (Path(home) / "bin").iterdir()
    made = launcher.stat().st_mtime_ns
    java.shim_home(bundled)
    assert launcher.stat().st_mtime_ns == made


@pytest.mark.skipif(sys.platform != "linux", reason="other systems run a file that is open for writing")
def test_a_launcher_that_is_open_for_writing_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    """As it is in a process that another thread starts while the launcher is written."""
    launcher = fake_java(tmp_path / "wheel", "25.0.2") / "bin" / "java"
    writing = launcher.open("a")
    ending = Timer(0.2, writing.close)
    ending.start()
    assert java.java_version(launcher) == 25
    ending.join()


def test_a_cache_folder_that_cannot_be_written_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    home = java.shim_home(fake_java(tmp_path / "wheel", "25.0.2") / "bin" / "java")
    assert java.java_version(Path(home) / "bin" / "java") == 25
    assert Path(home).stat().st_mode & 0o077 == 0
