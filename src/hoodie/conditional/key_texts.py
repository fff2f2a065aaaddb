"""Whether record key and partition path say which row a condition means that compares the columns they are made of.

They are texts. Equal values may have two of them (0.0 and -0.0), and different values one (null and '' in a partition
path): of such columns the condition itself decides, by a join, and not the look-up of a write.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types as arrow

from hoodie.keygen.arrow_keys import is_text
from hoodie.keygen.keygen import EMPTY_KEY_PART, NULL_KEY_PART, NULL_PARTITION, KeyGenerator


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Values of a text column whose key or path other values have, too, or that no key can be made of.

    values  these
    holding  all that contain one of these
    """

    values: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()


def equal_values_share_a_text(types: Mapping[str, pa.DataType], identity: tuple[str, ...]) -> bool:
    """Whether values that SQL finds equal have one text. Then a row that is to be written whichever clause is about it
    may go by the key: where the condition finds no pair and the key has a row, that row is written as well.

    types     of the table's columns
    identity  the columns that the condition compares
    """
    return not any(name in types and arrow.is_floating(types[name]) for name in identity)


def shared_texts(
    keygen: KeyGenerator, types: Mapping[str, pa.DataType], *, is_global: bool
) -> Mapping[str, SharedTexts] | None:
    """The values of each column that the look-up cannot tell apart; None: of some column it can tell none.

    types      of the table's columns; {} of a table without rows, which the look-up knows all about
    is_global  the partition says nothing about which row is meant
    """
    shared: dict[str, SharedTexts] = {}
    keys = keygen.record_keys
    paths = () if is_global else tuple(field.name for field in keygen.partition_fields)
    if any(name in types and not _is_told(name, types[name], keygen) for name in (*keys, *paths)):
        return None
    if keygen.writes_pairs and any(mark in name for name in keys for mark in ",:"):
        return None
    for name in (*keys, *paths):
        if name not in types or not is_text(types[name]):
            continue
        values, holding = [""], list[str]()
        if name in keys and keygen.writes_pairs:
            values += [EMPTY_KEY_PART, NULL_KEY_PART]
            holding += [f",{other}:" for other in keys[1:]]
        if name in paths:
            values.append(NULL_PARTITION)
            if len(paths) > 1 and not keygen.url_encode:
                holding.append("/")
        shared[name] = SharedTexts(tuple(values), tuple(holding))
    return shared


def _is_told(name: str, kind: pa.DataType, keygen: KeyGenerator) -> bool:
    """Whether all values of a column have a text of their own, but for those of `SharedTexts`."""
    if arrow.is_timestamp(kind):  # else they are cut to milliseconds, or the clocks of a zone go back
        return name not in keygen.in_millis and not keygen.consistent_timestamps
    plain = (arrow.is_integer, arrow.is_boolean, arrow.is_date, arrow.is_decimal)
    return is_text(kind) or any(is_plain(kind) for is_plain in plain)
