"""An index of the user's own: a function named by its import path, and a check of what its kernels answer.

    def make(options, config):                      # the write's options, the table's settings
        return Index(name="mine", look_up=ByKey(tagger), is_global=True, sees_logs=True)

    def tagger(context):                            # once a write, on the driver
        return functools.partial(tag, context.config.name)

    def tag(table, keys, partitions):               # in threads and in Spark's tasks: it is pickled
        return Tags(...)                            # row i is about key i

See `hoodie.index.contract` for the contract. The path comes from the caller's options, never from a table.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import pyarrow as pa

from hoodie.config.import_path import imported
from hoodie.config.table import TableConfig
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.index.contract import ByKey, Index, IndexContext, MakeIndex, TagKeys, Tags

_OPTION = "hoodie.index.class"


def make_own(path: str, options: Mapping[str, str], config: TableConfig) -> Index:
    """The index that an import path names, its answers checked.

    path    "package.module:attribute"
    Raises  InvalidOption when there is no such function, it fails to be called so, or makes no `Index`
    """
    index = _load(path)(options, config)
    if not isinstance(index, Index):
        raise InvalidOption(f"{_OPTION}={path}: it made {type(index).__name__}, expected a hoodie.index.contract.Index")
    if isinstance(index.look_up, ByKey):
        return replace(index, name=path, look_up=replace(index.look_up, tagger=partial(_tagger, path, index.look_up)))
    return replace(index, name=path)


def _load(path: str) -> MakeIndex:
    attribute = imported(path, f"{_OPTION}={path}", "attribute")
    if not callable(attribute):
        raise InvalidOption(
            f"{_OPTION}={path} is {type(attribute).__name__}, expected a function (options, config) -> Index"
        )
    return cast(MakeIndex, attribute)


def _tagger(path: str, look_up: ByKey, context: IndexContext) -> TagKeys:
    return partial(_tag, path, look_up.names_new, look_up.tagger(context))


def _tag(path: str, names_new: bool, tag: TagKeys, keys: pa.Array, partitions: pa.Array) -> Tags:
    tags = tag(keys, partitions)
    if not isinstance(tags, Tags):
        raise InvalidInput(f"index {path}: it answered with {type(tags).__name__}, expected hoodie.index.contract.Tags")
    columns = {"partitions": tags.partitions, "file_ids": tags.file_ids}
    for name, column in columns.items():
        if not isinstance(column, pa.Array) or not pa.types.is_string(column.type):
            kind = column.type if isinstance(column, (pa.Array, pa.ChunkedArray)) else type(column).__name__
            raise InvalidInput(f"index {path}: {name} is {kind}, expected a pyarrow.Array of strings")
        if len(column) != len(keys):
            much = "many" if len(column) > len(keys) else "few"
            raise InvalidInput(
                f"index {path}: {name} has {len(column)} rows for {len(keys)} keys, too {much}. Row i is about key i; "
                "a key that is not found has null."
            )
    if not tags.partitions.is_null().equals(tags.file_ids.is_null()):
        raise InvalidInput(f"index {path}: some rows have only one of partition and file id, expected both or neither")
    if names_new and tags.file_ids.null_count:
        raise InvalidInput(f"index {path}: {tags.file_ids.null_count} rows have no file id, but it must name them all")
    return tags
