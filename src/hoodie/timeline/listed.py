"""The timelines that this process listed last: the next listing of a table reads the names that are new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping

from hoodie.model.instant import Action
from hoodie.storage.protocol import Entry, Storage
from hoodie.timeline.timeline import Timeline

#: Tables whose timeline is remembered.
_MOST = 8
#: The place of a timeline, and the actions whose files were asked for.
_Key = tuple[str, str, frozenset[Action] | None]


class Listed:
    """The timeline of each of a few tables, and the entries of its completed instants' files. For all threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, tuple[Timeline, dict[str, Entry]]] = OrderedDict()
        self._turn = threading.Lock()

    def within(
        self,
        storage: Storage,
        folder: str,
        layout: int,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> Timeline:
        """The timeline as it was, if the files of its completed instants are still the same; else an empty one.

        sizes    entries of all files of completed instants, or of those of some actions
        stamped  these actions
        """
        with self._turn:
            timeline, entries = self._known.get(_key(storage, folder, stamped), (None, {}))
        if timeline is None or timeline.layout != layout or not entries.items() <= sizes.items():
            return Timeline(layout=layout)
        return timeline

    def keep(
        self,
        storage: Storage,
        timeline: Timeline,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> None:
        """Remember a timeline of layout 1. A storage in memory has no place of its own, and where a file has no
        modification time another one of its size looks like it."""
        entries = {name: entry for name, entry in sizes.items() if name[:1].isdigit()}
        timed = all(entry.mtime for entry in entries.values())
        if timeline.layout != 1 or not timed or storage.root.startswith("memory:"):
            return
        with self._turn:
            key = _key(storage, timeline.folder, stamped)
            self._known[key] = timeline, entries
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Forget everything, as a new process."""
        with self._turn:
            self._known.clear()


def _key(storage: Storage, folder: str, stamped: Collection[Action] | None) -> _Key:
    return storage.root, folder, None if stamped is None else frozenset(stamped)
