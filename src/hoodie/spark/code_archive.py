"""Hoodie's own code for Spark's workers that have the libraries it needs, but not Hoodie itself."""

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

#: One time for all files: the same code is the same archive, and a session takes it once.
_WRITTEN = (1980, 1, 1, 0, 0, 0)


def send(session: SparkSession) -> None:
    """Send Hoodie's code to the Python workers of a session."""
    session.addArtifacts(str(zip_package(Path(__file__).parents[1], _folder())), pyfile=True)


def zip_package(package: Path, folder: Path) -> Path:
    """A zip file of a package, named by its content: the same code is the same file.

    package  the folder of its modules
    folder   where the file is to be
    """
    files = sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    content = [(f"{package.name}/{path.relative_to(package).as_posix()}", path.read_bytes()) for path in files]
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + data for name, data in content)).hexdigest()[:16]
    archive = folder / f"{package.name}-{digest}.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, data in content:
            zipped.writestr(zipfile.ZipInfo(name, _WRITTEN), data, zipfile.ZIP_DEFLATED)
    return archive


@cache
def _folder() -> Path:
    """A folder of this process's own: the driver serves the file from there for as long as it runs."""
    folder = tempfile.mkdtemp(prefix="hoodie-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
