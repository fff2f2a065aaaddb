"""The contract of an index: what a write asks of it, as functions handed over in one frozen value.

An `Index` answers one question, which file group holds a key of the batch, and is notified of what the write did with
the keys. It is made on the driver from the user's options (`hoodie.index.choose`); everything in it can be pickled, as
its kernels run in driver threads and in tasks on executors, without Spark's API. In the order of a write:

1. `check(context)`     may this index be used on this table, with these options? Raises if not; nothing is on disk yet.
2. `look_up`            which file group holds each key. Either `ByFile`: the write itself looks keys up in base files;
                        or `ByKey`: `tagger(context)` makes, once a write and on the driver, a kernel that tags keys.
   `prepare(context)`   before that, once the write has its instant, with the partitions and slices of its batch: put
                        on disk what the look-up needs (a new partition's buckets). Raises if rows cannot be placed
3. tasks write their data files.
4. `record_writes(placed)`  in each task, after its files are written and before anything is published: which keys went
                        to which file group. An error fails the write: nothing is published, its files are rolled back.
                        An attempt may be repeated, and a write may still fail afterwards: what is recorded must not
                        count until the instant is completed on the timeline.
5. `announce(...)`      on the driver, once all tasks are done, with the instant, their statistics and the results of
                        `record_writes`: the last step before publication. What it returns is kept with the commit. An
                        error fails the write.
6. the commit is published.
7. `finalize(...)`      once, on the driver, after publication: what `record_writes` deferred until now (such as
                        removing deleted keys: done earlier, a failed commit would lose them). An error becomes a
                        warning: the commit stands.
   or `rolled_back(i)`  on the driver, after instant i was rolled back and its files are removed.

Beside writes, of an index that keeps something outside the table:
`catch_up(before, context)`  at the begin of a write, once dead ones are rolled back: put what it lacks since. `before`
                        is the timeline as the write saw it first. An error fails the write.
`rebuild(storage, mend)` make it anew from the table. `mend`: of keys in several file groups keep one row each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.display.short import Short
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline

_SHOWN = 10  # keys that the text of a rebuild names


@dataclass(frozen=True, slots=True)
class IndexContext:
    """The table as the write sees it, for an index that is to tag a batch.

    timeline    as of the write; an instant counts by `Timeline`'s rules
    partitions  partition paths of the batch
    slices      file slices by partition path, those of the batch's partitions; a partition that is new has none
                (for `check` none are listed yet)
    written     statistics of the newest commit that wrote files; for `check` only
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    partitions: tuple[str, ...] = ()
    slices: Mapping[str, Sequence[FileSlice]] = field(default_factory=dict)
    written: tuple[WriteStat, ...] = ()


@dataclass(frozen=True, slots=True)
class Tags:
    """Where keys are. Row i of each column is about key i of those looked up.

    partitions  string[n], the partition path of the file group; null where file_ids is null
    file_ids    string[n], its file id; null: the index knows the key in no file group, it is new
    cost        what the look-up cost. `ByKey`: candidates = checked = n, hits as found; others 0
    """

    partitions: pa.Array
    file_ids: pa.Array
    cost: IndexStats


@dataclass(frozen=True, slots=True)
class Placed:
    """What one task of a write did with the keys of one file group.

    instant   of the write: not completed yet
    group     the file group that the keys are in now, or were in (deleted)
    inserted  string[i], keys that `look_up` did not find and this write put here
    moved     string[m], keys that it found in another partition, deleted there and put here by this write
    deleted   string[d], keys that this write deleted here, whatever other versions of them say; those that moved away
              are not among them
    looked_up False: `look_up` was not asked (insert, bulk_insert, insert_overwrite): the table may hold the keys of
              `inserted` elsewhere, by a commit that stays valid should this write fail
    """

    instant: str
    group: FileGroupId
    inserted: pa.Array
    moved: pa.Array
    deleted: pa.Array
    looked_up: bool = True


#: keys string[n] and partition paths string[n] of a batch, no nulls -> where they are. Called in a thread or Spark task
#: with some ten thousand up to some million keys at a time; must be picklable (a partial of a module's function).
TagKeys = Callable[[pa.Array, pa.Array], Tags]
#: What a task did -> rows for `finalize` once the instant is published, or None. All of one schema.
RecordWrites = Callable[[Sequence[Placed]], "pa.Table | None"]


@dataclass(frozen=True, slots=True)
class ByFile:
    """Keys are looked up in the base files of the batch's partitions, or with a global index of all partitions.

    pruned  key ranges and bloom filters of the footers first leave out files that hold no key of the batch
    """

    pruned: bool


@dataclass(frozen=True, slots=True)
class ByKey:
    """Each key is looked up in the index; no base file is opened.

    tagger       on the driver, once a write -> the kernel that tags
    names_new    the kernel names a file group for new keys, too, which may not exist yet (BUCKET): a row is never
                 null, inserts take no other group, small files are not filled, and a new group never rolls over
    every_write  operations that look no key up (insert, bulk_insert, insert_overwrite) are tagged too, as the
                 file group follows from the key
    """

    tagger: Callable[[IndexContext], TagKeys]
    names_new: bool = False
    every_write: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Rebuilt(Short):
    """The result of a rebuild: entries put, entries removed that no row of the table has, file groups read, wall time.

    doubled  record keys of which the table has rows in several file groups -> these file groups
    mended   whether the rows of these keys but one each were deleted
    """

    entries: int
    removed: int
    groups: int
    seconds: float
    doubled: Mapping[str, tuple[FileGroupId, ...]]
    mended: bool = False

    def __str__(self) -> str:
        text = (
            f"{self.entries} entries of {self.groups} file groups written, {self.removed} removed that no row has "
            f"({self.seconds:.1f} s)"
        )
        if not self.doubled:
            return text
        shown = [
            f"  {key!r} in {', '.join(f'{group.file_id} of {group.partition!r}' for group in groups)}"
            for key, groups in list(self.doubled.items())[:_SHOWN]
        ]
        more = [f"  and {len(self.doubled) - _SHOWN} more"] if len(self.doubled) > _SHOWN else []
        what = "; of each the newest row was kept" if self.mended else ": --mend keeps the newest row of each"
        return "\n".join([text, f"{len(self.doubled)} keys in more than one file group{what}", *shown, *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """How a key finds its file group.

    name         as in `hoodie.index.type`, or the import path of a user's own
    is_global    a key is in one file group of the table; else of its partition
    sees_logs    keys are found that only log files hold: inserts of a Merge-on-Read table go there
    moves        global: a record that comes with another partition path than the stored one is deleted there and
                 inserted where it says (True), or updated where it is stored (False)
    replaceable  whether whole file groups may be replaced (overwrites, deletes of partitions); False: their ids are
                 used again, and readers would leave out what is written to a replaced one
    prepare, record_writes, announce, finalize, rolled_back, catch_up, rebuild  see the module's docstring; None: the
                 index keeps no state
    """

    name: str
    look_up: ByFile | ByKey
    is_global: bool = False
    sees_logs: bool = False
    moves: bool = True
    replaceable: bool = True
    check: Callable[[IndexContext], None] | None = None
    prepare: Callable[[IndexContext], None] | None = None
    record_writes: RecordWrites | None = None
    announce: Callable[[str, Sequence[WriteStat], Sequence[pa.Table]], Mapping[str, str]] | None = None
    finalize: Callable[[str, pa.Table], None] | None = None  # (instant, all rows that `record_writes` returned)
    rolled_back: Callable[[str], None] | None = None
    catch_up: Callable[[Timeline, IndexContext], None] | None = None
    rebuild: Callable[[Storage, bool], Rebuilt] | None = None


#: Options of a write and the table's settings -> the index. Raises InvalidOption on a bad option, before anything else.
#: `hoodie.index.bucket.make` is one, `package.module:attribute` of a user's own names another.
MakeIndex = Callable[[Mapping[str, str], TableConfig], Index]
