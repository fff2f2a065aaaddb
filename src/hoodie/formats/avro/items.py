"""Where the items of Avro arrays and maps begin: they follow each other without an index, so someone has to walk.

Many short arrays are walked together, item k of all of them in one step. A few long ones are walked one by one, and
where items have equal lengths, as keys of one form have, a whole stretch is guessed and checked at once.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hoodie.formats.avro.bytes import Cells, Cursors, Ints, Malformed, fail_where

_NARROW = 24  # as many arrays, or fewer, are walked one by one
_PATIENCE = 256  # items walked one by one after a wrong guess, before the next
_BOLDEST = 64 * 1024  # items guessed at once
_TOO_MANY = "an array or map with more items than bytes"


class Item(Protocol):
    """What is known of an item's type; `Node` has it."""

    @property
    def least(self) -> int: ...
    @property
    def width(self) -> int | None: ...
    def skip(self, cells: Cells, at: Cursors) -> Cursors: ...
    def skip_one(self, cells: Cells, at: int) -> int: ...


def find_items(cells: Cells, at: Cursors, item: Item) -> tuple[Ints, Cursors, Cursors]:
    """The items of the arrays at the cursors.

    returns  items of each array int64[n]; where each item begins int64[sum], array after array; cursors after int64[n]
    Raises   Malformed; nothing is allocated for a count of items that the bytes cannot hold
    """
    counts = np.zeros(len(at), np.int64)
    after = at.copy()
    starts: list[NDArray[np.int64]] = []
    active = np.arange(len(at))
    while len(active) > _NARROW:
        begin = after[active]
        count, cursor = cells.varints(begin)
        sized = np.flatnonzero(count < 0)  # a negative count is followed by the block's size in bytes
        if len(sized):
            cursor[sized] = cells.varints(cursor[sized])[1]
            count = np.abs(count)
        fail_where((count < 0) | (count > cells.size), _TOO_MANY, begin)
        if int(count.sum()) * max(item.least, 1) > cells.size:
            raise Malformed(_TOO_MANY, int(begin[int(count.argmax())]))
        if item.width is not None:
            total = int(count.sum())
            within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            starts.append(np.repeat(cursor, count) + within * item.width)
            cursor = cursor + count * item.width
        else:
            _walk_together(cells, item, count, cursor, starts)
        counts[active] += count
        after[active] = cursor
        active = active[count > 0]
    for row in active.tolist():
        begin_one = int(after[row])
        item_starts, end = _walk_one(cells, begin_one, item)
        counts[row] += sum(map(len, item_starts))
        after[row] = end
        starts += item_starts
    fail_where(after > cells.size, "an array or map that reaches past the end of the data", at)
    # Rows lie one after the other, so the order of the bytes is the order of the arrays.
    every = np.concatenate(starts) if starts else np.zeros(0, np.int64)
    every.sort(kind="stable")
    return counts, every, after


def _walk_together(cells: Cells, item: Item, count: Ints, cursor: Cursors, starts: list[NDArray[np.int64]]) -> None:
    """Walk `count` items on from each cursor, in place."""
    active = np.flatnonzero(count)
    steps = 0
    while len(active) > _NARROW:
        here = cursor[active]
        starts.append(here)
        cursor[active] = item.skip(cells, here)
        steps += 1
        active = active[count[active] > steps]
    for row in active.tolist():
        cursor[row] = _walk_items(cells, int(cursor[row]), int(count[row]) - steps, item, starts)


def _walk_one(cells: Cells, at: int, item: Item) -> tuple[list[NDArray[np.int64]], int]:
    """All blocks of the array at one cursor."""
    starts: list[NDArray[np.int64]] = []
    total = 0
    while True:
        begin = at
        count, at = cells.varint(at)
        if count == 0:
            return starts, at
        if count < 0:
            _, at = cells.varint(at)
            count = -count
        total += count
        if total * max(item.least, 1) > cells.size:
            raise Malformed(_TOO_MANY, begin)
        at = _walk_items(cells, at, count, item, starts)


def _walk_items(cells: Cells, at: int, count: int, item: Item, starts: list[NDArray[np.int64]]) -> int:
    """`count` items from one cursor; the cursor after them."""
    if item.width is not None:
        end = cells.forward(at, count * item.width)
        starts.append(at + np.arange(count, dtype=np.int64) * item.width)
        return end
    bold, patience = 64, 0
    while count:
        if patience == 0 and count > 2 * _NARROW:
            guessed = _guess(cells, at, min(count, bold), item)
            starts.append(guessed[:-1])
            at, count = int(guessed[-1]), count - (len(guessed) - 1)
            right = len(guessed) > bold
            bold = min(4 * bold, _BOLDEST) if right else 64
            patience = 0 if len(guessed) > _NARROW else _PATIENCE
            continue
        steps = min(count, patience or count)
        walked = np.empty(steps, np.int64)
        for step in range(steps):
            walked[step] = at
            at = item.skip_one(cells, at)
        starts.append(walked)
        count, patience = count - steps, 0
    return at


def _guess(cells: Cells, at: int, count: int, item: Item) -> Cursors:
    """Where items begin if all have the first one's length, up to the first that has not; the cursor after as last."""
    stride = item.skip_one(cells, at) - at
    count = min(count, (cells.size - at) // stride)
    while count > 1:
        begin = at + np.arange(count, dtype=np.int64) * stride
        try:
            right = item.skip(cells, begin) == begin + stride
        except Malformed as error:
            # Past the first item of another length the guessed cursors point anywhere: try those before it.
            count = min((error.at - at) // stride, count // 2)
        else:
            equal = count if right.all() else int(right.argmin())
            return at + np.arange(equal + 1, dtype=np.int64) * stride
    return at + np.array([0, stride], dtype=np.int64)
