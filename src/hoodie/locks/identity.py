"""One name for one table, however its path is written: locks outside the table's storage are keyed by this name.

Locks in the table's own storage do not need it: whatever the path, they are the same file.
"""

from __future__ import annotations

import os
import re

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)

#: Schemes that address the same store -> the canonical one.
_ONE_STORE = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfss": "abfs",
    "wasbs": "wasb",
}


def table_identity(root: str) -> str:
    """The name of the table at `Storage.root`.

    root     a local path, or a URI
    returns  a local path without symbolic links; or a URI with one scheme for a store (s3a:// is s3://), its host in
             lower case and no slash at the end
    """
    uri = _URI.fullmatch(root)
    if uri is None:
        return os.path.realpath(root)
    scheme, host, path = uri[1].lower(), uri[2].lower(), uri[3].rstrip("/")
    return f"{_ONE_STORE.get(scheme, scheme)}://{host}{path}"
