"""The file that --output names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hoodie.errors import InvalidInput


@contextmanager
def output_file(file: str) -> Iterator[BinaryIO]:
    """A file that appears when all is written, in the place of one that is there. A device or a pipe stays what it is,
    and so does a link.

    Raises InvalidInput where no file can be written
    """
    if not os.path.basename(file):
        raise InvalidInput(f"--output {file!r}: expected the path of a file")
    if not os.path.isdir(folder := os.path.dirname(file) or os.curdir):
        raise InvalidInput(f"--output {file}: there is no folder {folder}")
    is_plain = os.path.isfile(file) or not os.path.exists(file)
    try:
        place = os.path.realpath(file)
        written = f"{place}.{os.getpid()}.tmp" if is_plain else file
        sink = open(written, "wb")  # noqa: SIM115
    except OSError as error:
        raise InvalidInput(f"--output {file} cannot be written: {error.strerror}") from error
    try:
        with sink:
            yield sink
        if is_plain:
            os.replace(written, place)
    except BaseException:
        if is_plain:
            with suppress(FileNotFoundError):
                os.remove(written)
        raise
