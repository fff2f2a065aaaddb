"""How rows of a large batch meet their tasks: what one partition of Spark reads, and which tasks share one.

Spark refuses a shuffle block of 2 GB. A block is what one reader of the shuffle has for one task behind it, so it is
never larger than what a reader reads: that is bounded here, whatever the batch and however its keys are spread. The
number of blocks is readers times tasks, so tasks share a partition of Spark where there are many.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from hoodie.plan.write import WriteTask

#: Bytes of staged rows that a partition of Spark reads, about: one record batch is never cut.
READ_BYTES = 128 << 20
#: As many tasks have a partition of Spark each.
_ALONE = 2000
#: Tasks that share one get rows of so many bytes together, about; they are held in memory until all have arrived.
_SHARED_BYTES = 256 << 20
#: A base file that is rewritten counts as this share of its bytes.
_REWRITE_SHARE = 16
#: A filter is asked while pairs of key and file are few, or so many times the keys that a join would bring together.
_FEW_PAIRS = 50_000_000
_MOST_PAIRS = 4
#: Pairs that one task of their shuffle gets; one takes about 100 bytes.
_PAIRS_OF_TASK = 2_000_000


def runs_of_batches(sizes: Iterable[int], most: int) -> Iterator[slice]:
    """Runs of record batches that are read together: of about `most` bytes, or of one batch.

    sizes  bytes of each batch
    """
    first = total = number = 0
    for number, size in enumerate(sizes, 1):
        if total and total + size > most:
            yield slice(first, number - 1)
            first, total = number - 1, 0
        total += size
    if number > first:
        yield slice(first, number)


def shared_partitions(tasks: Sequence[WriteTask], row_bytes: float) -> list[int]:
    """The partition of Spark that each task of a plan runs in, from 0 on; neighbours share one where there are many.

    row_bytes  of a row of the batch
    """
    if len(tasks) <= _ALONE:
        return list(range(len(tasks)))
    places, place, held = [], 0, 0.0
    for task in tasks:
        size = (task.updates + task.inserts) * row_bytes + task.bytes_read / _REWRITE_SHARE
        if held and held + size > _SHARED_BYTES:
            place, held = place + 1, 0.0
        held += size
        places.append(place)
    return places


def expected_pairs(lowest: pa.Array, highest: pa.Array, keys: int) -> float:
    """How many pairs of key and file the key ranges of a partition's files leave, for keys spread as the files' are.

    lowest, highest  string[f], the bounds; null in either: the file may hold any key
    keys             of the batch in the partition
    """
    bounded = np.asarray(lowest.is_valid()) & np.asarray(highest.is_valid())
    mask = pa.array(bounded)
    bounds = pa.concat_arrays([lowest.filter(mask), highest.filter(mask)])
    count = int(bounded.sum())
    whole = float(len(bounded) - count)
    if count:
        order = np.unique(np.asarray(bounds.to_numpy(zero_copy_only=False), dtype=object), return_inverse=True)[1]
        below, above = order[:count], order[count:]
        whole += float((above - below + 1).sum()) / (int(order.max()) + 1)
    return whole * keys


def joins_keys(pairs: float, stored: int, keys: int) -> bool:
    """Whether the keys of the files are joined with those of the batch, as key ranges leave too many pairs for filters.

    pairs   `expected_pairs` of all partitions
    stored  keys of the files
    keys    of the batch
    """
    return pairs > _FEW_PAIRS and pairs > _MOST_PAIRS * (stored + keys)


def pair_partitions(pairs: float, shuffle_partitions: int) -> int:
    """Into how many partitions of Spark so many pairs are shuffled.

    shuffle_partitions  of the session: at least these
    """
    return max(shuffle_partitions, -int(-pairs // _PAIRS_OF_TASK))
