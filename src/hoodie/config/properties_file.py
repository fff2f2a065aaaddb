"""Options in files: the one that a call names, and the defaults of a machine, as Hudi reads them.

Source: DFSPropertiesConfiguration of Hudi 0.15: a pair a line, its key and value apart by `=` or by blanks.
"""

import os
from pathlib import Path

from hoodie.errors import InvalidOption

_DEFAULTS = "hudi-defaults.conf"
_SYSTEM_FOLDER = "/etc/hudi/conf"
_INCLUDE = "include"


def default_options() -> dict[str, tuple[str, str]]:
    """The defaults of this machine, each with the file it is from: `/etc/hudi/conf/hudi-defaults.conf`, and over it
    that of the folder HUDI_CONF_DIR. Files that are not there count as empty.

    Raises InvalidOption on one that cannot be read
    """
    defaults: dict[str, tuple[str, str]] = {}
    for folder in (_SYSTEM_FOLDER, os.environ.get("HUDI_CONF_DIR", "")):
        path = os.path.join(folder.removeprefix("file://"), _DEFAULTS)
        if folder and os.path.exists(path):
            defaults |= {key: (value, path) for key, value in read_properties_file(path).items()}
    return defaults


def read_properties_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The options in a properties file.

    path    local, or a URI that fsspec knows
    Raises  InvalidOption when the file, or one that it includes, cannot be read; on a line that is no pair
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidOption(f"props={path!r}: expected the path of a properties file")
    return _read(os.fspath(path), ())


def _read(path: str, within: tuple[str, ...]) -> dict[str, str]:
    if path in within:
        raise InvalidOption(f"{path} includes itself, by {' and '.join(within[within.index(path) :])}")
    options: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, value = _pair(text)
        if not key or value is None:
            raise InvalidOption(f"{path}, line {number}: {text.split()[0]!r} has no value: expected key=value")
        if key == _INCLUDE:
            options |= _read(_included_path(path, value), (*within, path))
        else:
            options[key] = value
    return options


def _pair(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if equals:
        return key.strip(), value.strip()
    parts = text.split(maxsplit=1)
    return (parts[0], parts[1]) if len(parts) == 2 else (parts[0], None)


def _included_path(path: str, included: str) -> str:
    """The path of an included file: relative to the file that includes it."""
    if "://" in included or included.startswith("/"):
        return included
    return f"{path.rpartition('/')[0] or '.'}/{included}"


def _text(path: str) -> str:
    try:
        return _bytes(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InvalidOption(f"{path} is no properties file: byte {problem.start} is not UTF-8") from problem
    except (OSError, ValueError, ImportError) as problem:  # the last two: of a protocol that fsspec lacks
        raise InvalidOption(f"the properties file {path} cannot be read: {problem}") from problem


def _bytes(path: str) -> bytes:
    local = path.removeprefix("file://")
    if "://" not in local:
        return Path(local).read_bytes()
    import fsspec  # local files need none of it

    with fsspec.open(path, "rb") as file:
        data: bytes = file.read()
    return data
