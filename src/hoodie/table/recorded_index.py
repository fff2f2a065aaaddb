"""The index that a table was created for, as its properties keep it."""

from collections.abc import Mapping

from hoodie.config.options import read_options
from hoodie.config.table import from_properties
from hoodie.config.write import BucketEngine, IndexOptions, IndexType, WriteOptions
from hoodie.index.bucket import BUCKETS, ENGINE, HASH_FIELDS
from hoodie.index.choose import make_index

#: The table property that says which index a table was created for. Hudi keeps none.
RECORDED = "hoodie.index.type"


def recorded_index(options: Mapping[str, str], table: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table that is created for an index: nothing when its options name none.

    table   its other properties
    Raises  InvalidOption on a hash field outside the record key, and on CONSISTENT_HASHING for a Copy-on-Write table
    """
    kind = read_options(WriteOptions, options).index
    if kind is IndexType.AUTO:
        return {}
    properties = {RECORDED: kind.value}
    if kind is IndexType.RECORD_INDEX:  # by the name that its writers give: Hudi refuses a job that gives another one
        properties[RECORDED] = options[RECORDED].strip().upper()
    if kind is IndexType.BUCKET:
        make_index(kind, options, from_properties(table))
        chosen = read_options(IndexOptions, options)
        properties[BUCKETS] = str(chosen.buckets)
        if chosen.engine is not BucketEngine.SIMPLE:
            properties[ENGINE] = chosen.engine.value
        if chosen.hash_fields:
            properties[HASH_FIELDS] = ",".join(chosen.hash_fields)
    return properties
