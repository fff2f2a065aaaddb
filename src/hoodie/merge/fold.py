"""Many versions of each key folded into one, in the order in which they arrived.

Where there is a closed form it is taken; else work goes in passes: pass r takes the r-th further version of every key
that has one, for all keys at once. Groups are laid out by falling number of versions, so that each pass works on a
prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.merge.fields import fold_fields
from hoodie.merge.ordering import has_ordering, order_ranks, roots
from hoodie.merge.rows import Mask, Positions, pick
from hoodie.merge.rules import Choice, MergeRule, Survivor


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """What is left of each key, by group number.

    rows     one row a group
    deleted  bool[groups]: the row is a tombstone: its key and ordering value count, no more; None: there are none
    after_delete  bool[groups]: a delete among the versions won over all before it, so that no row that is stored
             counts; None: there are none
    """

    rows: pa.Table
    deleted: Mask | None = None
    after_delete: Mask | None = None


def fold(
    rows: pa.Table, groups: Positions, deleted: Mask | None, rule: MergeRule, after_delete: Mask | None = None
) -> Folded:
    """The surviving version of each group.

    rows     versions in the order of their arrival
    groups   int64[n], dense group numbers
    deleted  bool[n]: rows that are tombstones, entries of delete blocks: a key, and an ordering value where it may be
             compared with that of a record; null where it may not, so that the delete wins over all before it
    after_delete  bool[n]: of versions that were folded before, as in `Folded`
    """
    cut = np.zeros(int(groups.max(initial=-1)) + 1, np.bool_)
    if after_delete is not None:
        cut[groups[after_delete]] = True
    if not rule.picks_rows:
        rows, tombstones = _folded(
            rows, groups, np.zeros(len(groups), np.bool_) if deleted is None else deleted, cut, rule
        )
        return Folded(rows, _mask_or_none(tombstones), _mask_or_none(cut))
    if deleted is None:
        return Folded(pick([rows], _latest(rows, groups, rule)), None, _mask_or_none(cut))
    survivors = _survivors(rows, groups, deleted, cut, rule)
    return Folded(pick([rows], survivors), _mask_or_none(deleted[survivors]), _mask_or_none(cut))


def _mask_or_none(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


class _Versions(NamedTuple):
    """Versions as far as it matters for who wins when one of two is a tombstone; aligned arrays."""

    ranks: Positions
    tombstones: Mask
    final: Mask  # tombstones that win over all before them

    def at(self, where: Positions | slice) -> _Versions:
        return _Versions(self.ranks[where], self.tombstones[where], self.final[where])


def _newer_wins(older: _Versions, newer: _Versions, rule: MergeRule) -> Mask:
    """Whether the newer of two versions wins, by their ordering values.

    A delete wins unless the record before it has a greater ordering value. Any record wins over a delete before it,
    unless the rule orders deletes like records.
    """
    if rule.survivor is Survivor.OLDEST:
        record = np.zeros(len(older.ranks), np.bool_)
    elif rule.survivor is Survivor.FIRST:
        record = older.ranks < newer.ranks
    else:
        record = older.ranks <= newer.ranks
    delete = ((older.ranks <= newer.ranks) & ~older.final) | newer.final
    revival = older.ranks <= newer.ranks if rule.ordered_deletes else np.True_
    return np.where(newer.tombstones, delete, np.where(older.tombstones, revival, record))


def _cuts(older: _Versions, newer: _Versions, newer_wins: Mask, rule: MergeRule) -> Mask:
    """Where a record follows a delete that won over whatever is stored.

    A delete that the rule orders like a record may lose to the stored row, unless it has no ordering value.
    """
    return older.tombstones & ~newer.tombstones & newer_wins & (older.final if rule.ordered_deletes else np.True_)


def _versions(rows: pa.Table, deleted: Mask, rule: MergeRule) -> _Versions:
    final = deleted & ~has_ordering(rows, rule.ordering) if rule.ordering else deleted
    return _Versions(order_ranks([rows], rule.ordering), deleted, final)


def _latest(rows: pa.Table, groups: Positions, rule: MergeRule) -> Positions:
    """Where the survivor of each group is when there is no tombstone: the fold in closed form."""
    counts = np.bincount(groups)
    several = counts[groups] > 1
    latest = np.empty(len(counts), np.int64)
    alone = np.flatnonzero(~several)
    latest[groups[alone]] = alone
    among = np.flatnonzero(several)
    if not len(among):
        return latest
    columns = [name for name in rows.column_names if name in roots(rule.ordering, rows.column_names)]
    ranks = np.zeros(len(among), np.int64)
    if columns:
        ranks = order_ranks([rows.select(columns).take(pa.array(among))], rule.ordering)
    by_arrival = np.arange(len(among))
    if rule.survivor is Survivor.OLDEST:
        ranks, by_arrival = np.zeros_like(ranks), -by_arrival
    elif rule.survivor is Survivor.FIRST:
        by_arrival = -by_arrival
    order = np.lexsort((by_arrival, ranks, groups[among]))
    sorted_groups = groups[among][order]
    ends = np.flatnonzero(np.append(sorted_groups[1:] != sorted_groups[:-1], True))
    latest[sorted_groups[ends]] = among[order[ends]]
    return latest


class _Passes:
    """Groups by falling number of versions; `first` and `further` are positions of rows in that layout."""

    def __init__(self, groups: Positions) -> None:
        self._order = np.argsort(groups, kind="stable")
        counts = np.bincount(groups)
        self.by_size = np.argsort(-counts, kind="stable")
        self._counts = counts[self.by_size]
        self._starts = (np.cumsum(counts) - counts)[self.by_size]
        self.first: Positions = self._order[self._starts]
        self.number = int(counts.max(initial=1)) - 1

    def further(self, r: int) -> Positions:
        """The (r + 1)-th version of the groups that have one, which are the first ones."""
        many = int(np.searchsorted(-self._counts, -r, side="left"))
        versions: Positions = self._order[self._starts[:many] + r]
        return versions


def _survivors(rows: pa.Table, groups: Positions, deleted: Mask, cut: Mask, rule: MergeRule) -> Positions:
    """Where the survivor of each group is, tombstones among them; no row is touched. Marks groups in `cut`."""
    versions = _versions(rows, deleted, rule)
    passes = _Passes(groups)
    current = passes.first.copy()
    for r in range(1, passes.number + 1):
        newer = passes.further(r)
        older = current[: len(newer)]
        pair = versions.at(older), versions.at(newer)
        wins = _newer_wins(*pair, rule)
        cut[passes.by_size[: len(newer)]] |= _cuts(*pair, wins, rule)
        current[: len(newer)] = np.where(wins, newer, older)
    survivors = np.empty_like(current)
    survivors[passes.by_size] = current
    return survivors


def _folded(rows: pa.Table, groups: Positions, deleted: Mask, cut: Mask, rule: MergeRule) -> tuple[pa.Table, Mask]:
    """The fold for rules that make rows: in closed form where there is one, so that a key with very many versions
    costs no pass each. Marks groups in `cut`."""
    if rule.merger is not None:
        return _folded_in_passes(rows, groups, deleted, cut, rule)
    count = int(groups.max()) + 1
    in_passes = np.zeros(count, np.bool_)
    in_passes[groups[deleted | rule.is_delete(rows)]] = True
    if in_passes.all():
        return _folded_in_passes(rows, groups, deleted, cut, rule)
    number = np.cumsum(in_passes) - 1  # groups renumbered within their kind
    number[~in_passes] = np.arange(count - np.count_nonzero(in_passes))
    slow = in_passes[groups]
    fast_at = np.flatnonzero(~slow)
    positions = fast_at[np.argsort(number[groups[fast_at]], kind="stable")]
    fast = fold_fields(pick([rows], positions), number[groups[positions]], rule)
    if not slow.any():
        return fast, np.zeros(count, np.bool_)
    slow_at = np.flatnonzero(slow)
    slow_cut = cut[in_passes]
    slow_rows, slow_tombstones = _folded_in_passes(
        pick([rows], slow_at), number[groups[slow_at]], deleted[slow_at], slow_cut, rule
    )
    tombstones = np.zeros(count, np.bool_)
    tombstones[in_passes], cut[in_passes] = slow_tombstones, slow_cut
    return pick([fast, slow_rows], np.where(in_passes, number + fast.num_rows, number)), tombstones


def _folded_in_passes(
    rows: pa.Table, groups: Positions, deleted: Mask, cut: Mask, rule: MergeRule
) -> tuple[pa.Table, Mask]:
    """The fold in passes, each making the rows that the next one goes on with. Marks groups in `cut`."""
    rows, passes = rows.combine_chunks(), _Passes(groups)
    current, tombstones = pick([rows], passes.first), deleted[passes.first]
    parts: list[tuple[pa.Table, Mask]] = []
    for r in range(1, passes.number + 1):
        positions = passes.further(r)
        parts.append((current.slice(len(positions)), tombstones[len(positions) :]))
        newer = pick([rows], positions)
        older, older_tombstones = current.slice(0, len(positions)), tombstones[: len(positions)]
        current, tombstones, cuts = _step(older, older_tombstones, newer, deleted[positions], rule)
        cut[passes.by_size[: len(positions)]] |= cuts
    parts.append((current, tombstones))
    parts.reverse()
    layout = np.empty_like(passes.by_size)
    layout[passes.by_size] = np.arange(len(layout))
    return pick([part for part, _ in parts], layout), np.concatenate([mask for _, mask in parts])[layout]


def _step(
    older: pa.Table, older_tombstones: Mask, newer: pa.Table, newer_tombstones: Mask, rule: MergeRule
) -> tuple[pa.Table, Mask, Mask]:
    """One version folded into another, pair by pair: the rows, which are tombstones, and which follow a delete."""
    live = ~(older_tombstones | newer_tombstones)
    if live.all():
        outcome = rule.precombine(older, newer)
        return outcome.rows(older, newer), outcome.choice == Choice.DELETE, ~live
    count = older.num_rows
    both = _versions(pa.concat_tables([older, newer]), np.concatenate([older_tombstones, newer_tombstones]), rule)
    pair = both.at(slice(0, count)), both.at(slice(count, None))
    wins = _newer_wins(*pair, rule)
    source = np.where(wins, np.arange(count) + count, np.arange(count))
    tombstones = np.where(wins, newer_tombstones, older_tombstones)
    parts = [older, newer]
    if live.any():
        positions = pa.array(np.flatnonzero(live))
        some_older, some_newer = older.take(positions), newer.take(positions)
        outcome = rule.precombine(some_older, some_newer)
        parts.append(outcome.rows(some_older, some_newer))
        source[live] = 2 * count + np.arange(np.count_nonzero(live))
        tombstones[live] = outcome.choice == Choice.DELETE
    return pick(parts, source), tombstones, _cuts(*pair, wins, rule)
