"""The timelines that this process listed last: the next listing of a table reads the names that are new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from hoodie.storage.protocol import Entry, Storage
from hoodie.timeline.timeline import Timeline

#: Tables whose timeline is remembered.
_MOST = 8


class Listed:
    """The timeline of each of a few tables, and the entries of its completed instants' files. For all threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[Timeline, dict[str, Entry]]] = OrderedDict()
        self._turn = threading.Lock()

    def within(self, storage: Storage, folder: str, layout: int, sizes: Mapping[str, Entry]) -> Timeline:
        """The timeline as it was, if the files of its completed instants are still the same; else an empty one.

        sizes  entries of all files of completed instants
        """
        with self._turn:
            timeline, entries = self._known.get((storage.root, folder), (None, {}))
        if timeline is None or timeline.layout != layout or not entries.items() <= sizes.items():
            return Timeline(layout=layout)
        return timeline

    def keep(self, storage: Storage, timeline: Timeline, sizes: Mapping[str, Entry]) -> None:
        """Remember a timeline of layout 1. A storage in memory has no place of its own, and where a file has no
        modification time another one of its size looks like it."""
        entries = {name: entry for name, entry in sizes.items() if name[:1].isdigit()}
        timed = all(entry.mtime for entry in entries.values())
        if timeline.layout != 1 or not timed or storage.root.startswith("memory:"):
            return
        with self._turn:
            self._known[storage.root, timeline.folder] = timeline, entries
            self._known.move_to_end((storage.root, timeline.folder))
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Forget everything, as a new process."""
        with self._turn:
            self._known.clear()
