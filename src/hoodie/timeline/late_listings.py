"""What this process completed and no listing has shown yet.

A storage that lists late would hide it from the next write of this process, which would build on the state before.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection

from hoodie.storage.protocol import Storage, split

_MOST = 256  # not yet shown, of all tables

_unseen: OrderedDict[tuple[str, str], None] = OrderedDict()  # (root, path)
_turn = threading.Lock()


def just_completed(storage: Storage, path: str) -> None:
    """This process has created the completed file of an instant. Storages without a network list what they have:
    nothing of theirs needs to be remembered."""
    with _turn:
        _unseen[storage.root, path] = None
        while len(_unseen) > _MOST:
            _unseen.popitem(last=False)


def unlisted(storage: Storage, folder: str, names: Collection[str]) -> list[str]:
    """Paths that this process completed, that are there, and that a listing of the timeline's folder lacks: another
    thread completed them since, or the storage lists late. No call, unless the listing lacks some.
    """
    with _turn:
        of_table = [path for root, path in _unseen if root == storage.root and split(path)[0] == folder]
    missing = []
    for path in of_table:
        if split(path)[1] not in names and storage.exists(path):
            missing.append(path)
            continue
        with _turn:  # listed, or rolled back or archived by another process
            _unseen.pop((storage.root, path), None)
    return missing


def forget() -> None:
    """Forget everything, as a new process."""
    with _turn:
        _unseen.clear()
