"""Procedures that go back: rollback, savepoints, restore; and markers of a write that is gone."""

from hoodie.commit.markers import delete_markers
from hoodie.statements.procedures.procedure import Called, Rows
from hoodie.table.state import load_state


def rollback_to_instant(called: Called) -> Rows:
    called.table.rollback(called.arguments["instant_time"])
    return [(True,)]


def create_savepoint(called: Called) -> Rows:
    called.table.savepoint(
        called.get("commit_time") or None, comment=called.get("comments", ""), user=called.get("user", "")
    )
    return [(True,)]


def run_delete_savepoint(called: Called) -> Rows:
    """Deletes the savepoint of an instant; without one the newest, as Hudi does."""
    called.table.delete_savepoint(_savepoint(called))
    return [(True,)]


def rollback_to_savepoint(called: Called) -> Rows:
    """To an instant's savepoint; without one to the newest, as Hudi does."""
    called.table.restore(_savepoint(called))
    return [(True,)]


def _savepoint(called: Called) -> str:
    if time := called.get("instant_time"):
        return str(time)
    savepoints = called.table.savepoints()
    if not savepoints:
        raise called.problem("the table has no savepoint")
    return savepoints[-1].instant


def delete_marker(called: Called) -> Rows:
    """Deletes the markers of an instant that is not pending: its rollback needs those of a pending one."""
    storage, time = called.state.storage, called.arguments["instant_time"]
    with called.write_settings.writers.lock_on(storage):
        if any(time in (instant.requested, instant.completed) for instant in load_state(storage).timeline.pending()):
            raise called.problem(
                f"{time} is pending: its markers say which files a rollback removes. CALL rollback_to_instant does both"
            )
        delete_markers(storage, time)
    return [(True,)]
