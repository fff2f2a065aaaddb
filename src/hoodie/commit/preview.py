"""The table as a commit would leave it, for those who look at its rows before it is published."""

import builtins
import dataclasses

from hoodie.commit.transaction import Transaction, remove_leftovers
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import State
from hoodie.storage.protocol import Entry, Storage, split
from hoodie.storage.wrapped import WrappedStorage
from hoodie.timeline.timeline import time_after, utc_now
from hoodie.timeline.transition import completed_content, instant_path


class WithFile(WrappedStorage):
    """A storage with one file more, which nobody else sees. Pickles."""

    def __init__(self, inner: Storage, path: str, data: bytes) -> None:
        super().__init__(inner)
        self.path, self.data = path, data

    def list(self, folder: str = "") -> builtins.list[Entry]:
        entries = super().list(folder)
        parent, name = split(self.path)
        if folder != parent:
            return entries
        # Without a time of its last change it is not remembered by those who remember files.
        return sorted([*entries, Entry(name, size=len(self.data), mtime=0)], key=lambda entry: entry.name)

    def read(self, path: str) -> bytes:
        return self.data if path == self.path else super().read(path)

    def exists(self, path: str) -> bool:
        return path == self.path or super().exists(path)

    def size(self, path: str) -> int:
        return len(self.data) if path == self.path else super().size(path)


def preview(transaction: Transaction, metadata: CommitMetadata) -> Storage:
    """The table's storage as readers would see it with the commit. What lost task attempts left is removed first."""
    remove_leftovers(transaction, metadata.paths)
    state = transaction.state
    published = dataclasses.replace(transaction.instant, state=State.COMPLETED)
    if state.layout.stamps_completion:
        newest = max(state.timeline.newest, published.requested)
        published = dataclasses.replace(published, completed=time_after(newest, state.config.timezone, utc_now))
    return WithFile(
        state.storage,
        instant_path(published, state.layout),
        completed_content(metadata, published.action, state.layout),
    )
