"""Which file group holds a key: candidates and hits, Arrow in and out."""

from hoodie.index.contract import ByFile, ByKey, Index, IndexContext, MakeIndex, Placed, RecordWrites, TagKeys, Tags
from hoodie.index.pruning import IndexStats

__all__ = [
    "ByFile",
    "ByKey",
    "Index",
    "IndexContext",
    "IndexStats",
    "MakeIndex",
    "Placed",
    "RecordWrites",
    "TagKeys",
    "Tags",
]
