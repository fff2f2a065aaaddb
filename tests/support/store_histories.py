"""Random histories of writes on a storage, beside a model of what the table holds."""

import warnings
from collections.abc import Callable

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from hoodie.errors import DamagedLog
from hoodie.storage import Storage
from support.histories import History
from support.history_model import BY_ORDERING
from support.strategies import histories, shapes

#: Files hold a handful of rows, so that some grow and others are closed.
_SMALL = {
    "hoodie.parquet.max.file.size": 6_000,
    "hoodie.parquet.small.file.limit": 5_000,
    "hoodie.copyonwrite.record.size.estimate": 1_000,
    "hoodie.datasource.write.payload.class": BY_ORDERING,
}


def steps_of_histories(new: Callable[[], Storage], kind: str, *, examples: int, longest: int, number: int) -> int:
    """Carry out histories of tables of a type, each checked after each step; returns the steps.

    new      a storage of an empty folder
    longest  most steps of a history; the least are three
    number   the seed: the same histories in each run
    """
    steps = 0

    @seed(number)
    @settings(max_examples=examples, database=None, phases=[Phase.generate], deadline=None)
    @given(st.data())
    def of_tables(data: st.DataObject) -> None:
        nonlocal steps
        shape = data.draw(shapes(), label="shape")
        history = History(shape, {**_SMALL, "hoodie.datasource.write.table.type": kind}, new())
        for step in data.draw(histories(shape, least=3, most=longest), label="history"):
            history.take(step)
            steps += 1
        if history.states:
            history.check_as_of(data.draw(st.sampled_from(sorted(history.states)), label="as of"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)  # of writers that died, until the next one takes their write back
        of_tables()
    return steps
