"""Which writes contradict each other: timelines and file groups in, conflicts out."""

from hoodie.commit.conflict_check import made_on, undisturbed
from hoodie.model import plans
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State
from hoodie.plan.conflict import (
    Other,
    appended_groups,
    conflicts,
    groups_of_commit,
    other_of_clustering,
    other_of_compaction,
    since,
    unaware,
    vanished,
)
from hoodie.timeline.timeline import Timeline

F, G, H = (FileGroupId("oslo", name) for name in "fgh")
DONE, BEGUN, ASKED = State.COMPLETED, State.INFLIGHT, State.REQUESTED


def at(time: int, action: Action = Action.DELTA_COMMIT, state: State = DONE) -> Instant:
    return Instant(f"{time:017d}", action, state)


def timeline(*instants: Instant) -> Timeline:
    return Timeline(tuple(sorted(instants)))


OWN = at(5, state=BEGUN)
BEFORE = timeline(at(1), at(2), at(3, state=BEGUN), at(4, Action.COMPACTION, ASKED), OWN)


SEEN_BY_OWN = timeline(at(1), at(2), at(3, state=BEGUN), at(4, Action.COMPACTION, ASKED))


def test_a_write_is_undisturbed_whose_timeline_has_got_itself_alone():
    for own in (OWN, at(5)):
        now = timeline(*SEEN_BY_OWN.instants, own)
        assert undisturbed(SEEN_BY_OWN, now, OWN)
        assert not since(SEEN_BY_OWN, now, OWN)
        assert not vanished(SEEN_BY_OWN, now)


def test_whatever_another_writer_does_disturbs_a_write():
    for now in (
        timeline(at(1), at(2), at(3), at(4, Action.COMPACTION, ASKED), OWN),  # completes what it had begun
        timeline(*SEEN_BY_OWN.instants, OWN, at(6, Action.COMPACTION, ASKED)),  # plans
        timeline(at(1), at(3, state=BEGUN), at(4, Action.COMPACTION, ASKED), OWN),  # rolls a commit back
    ):
        assert not undisturbed(SEEN_BY_OWN, now, OWN)
    later = timeline(*SEEN_BY_OWN.instants, at(6, Action.COMPACTION, ASKED))  # of a compaction that began after that
    assert not undisturbed(later, timeline(*later.instants, OWN), OWN)
    assert since(later, timeline(*later.instants, OWN), OWN)


def test_what_was_completed_before_is_no_candidate():
    assert since(BEFORE, BEFORE, OWN) == ()


def test_what_was_pending_and_is_completed_is_a_candidate():
    now = timeline(at(1), at(2), at(3), at(4, Action.COMPACTION, ASKED), OWN)
    assert since(BEFORE, now, OWN) == (at(3),)


def test_an_older_instant_that_nobody_had_seen_is_a_candidate():
    """The clock of its writer went behind."""
    now = timeline(*BEFORE.instants, Instant("00000000000000001", Action.COMMIT, DONE))
    early = Instant("00000000000000000", Action.DELTA_COMMIT, DONE)
    assert early in since(BEFORE, timeline(*now.instants, early), OWN)


def test_of_pending_instants_only_planned_ones_are_candidates():
    now = timeline(
        *BEFORE.instants,
        at(6, state=BEGUN),
        at(7, Action.COMPACTION, ASKED),
        at(8, Action.REPLACE_COMMIT, BEGUN),
        at(9, Action.CLEAN, ASKED),
    )
    assert since(BEFORE, now, OWN) == (at(7, Action.COMPACTION, ASKED), at(8, Action.REPLACE_COMMIT, BEGUN))


def test_a_compaction_that_was_known_is_a_candidate_once_it_is_completed():
    now = timeline(at(1), at(2), at(4, Action.COMMIT), OWN)
    assert since(BEFORE, now, OWN) == (at(4, Action.COMMIT),)


def test_its_own_instant_is_none_of_the_others():
    now = timeline(*BEFORE.instants[:-1], at(5))
    assert since(BEFORE, now, OWN) == ()


def test_instants_that_were_archived_do_not_matter():
    now = timeline(at(2), OWN)
    assert since(BEFORE, now, OWN) == ()
    assert vanished(BEFORE, now) == ()


def test_a_commit_that_was_rolled_back_is_missed():
    assert vanished(BEFORE, timeline(at(1), OWN)) == (at(2),)
    assert vanished(BEFORE, timeline(OWN)) == (at(1), at(2))


def test_writes_of_one_file_group_contradict_each_other():
    other = Other(at(6), Operation.UPSERT, frozenset({F, G}))
    (found,) = conflicts(BEFORE, {G, H}, [other], alone=False)
    assert found.groups == (G,)
    assert str(found) == "UPSERT at 00000000000000006 (completed) with file group oslo/g"


def test_writes_of_different_file_groups_do_not():
    assert conflicts(BEFORE, {G}, [Other(at(6), Operation.UPSERT, frozenset({F}))], alone=False) == []
    assert conflicts(BEFORE, {G}, [Other(at(6), Operation.INSERT, frozenset({FileGroupId("rome", "g")}))], False) == []


def test_a_writer_that_is_alone_takes_no_other_write_beside_it():
    other = Other(at(6), Operation.UPSERT, frozenset({F}))
    (found,) = conflicts(BEFORE, {G}, [other], alone=True)
    assert found.groups == ()
    for operation in (Operation.COMPACT, Operation.CLUSTER):
        assert conflicts(BEFORE, {G}, [Other(at(6), operation, frozenset({F}))], alone=True) == []
    pending = Other(at(6, Action.REPLACE_COMMIT, BEGUN), None, frozenset({F}))
    assert conflicts(BEFORE, {G}, [pending], alone=True) == []


def test_a_compaction_that_the_write_knew_of_does_not_contradict_it():
    for action, state in ((Action.COMMIT, DONE), (Action.COMPACTION, ASKED)):
        assert conflicts(BEFORE, {G}, [Other(at(4, action, state), Operation.COMPACT, frozenset({G}))], False) == []


def test_a_compaction_that_was_planned_meanwhile_contradicts_a_write_of_its_file_groups():
    """The write's log belongs to the slice that the compaction closes: nobody would read it any more."""
    for time in (3, 6):  # also when the planner's clock was behind
        other = Other(at(time, Action.COMPACTION, ASKED), Operation.COMPACT, frozenset({G}))
        assert [found.groups for found in conflicts(BEFORE, {G}, [other], alone=False)] == [(G,)]
        assert conflicts(BEFORE, {H}, [other], alone=False) == []


def test_groups_of_a_commit_are_those_it_wrote_and_those_it_took_away():
    stats = (WriteStat(file_id="f", path="oslo/f", partition="oslo"), WriteStat(file_id="", path=None, partition=None))
    done = CommitMetadata(operation=Operation.INSERT_OVERWRITE, stats={"oslo": stats}, replaced={"oslo": ("g",)})
    assert groups_of_commit(done) == {F, G}


def test_groups_of_plans_are_those_they_name():
    operation = plans.CompactionOperation(group=F, base_instant="1", base_file="", log_files=())
    assert other_of_compaction(at(6), plans.CompactionPlan(operations=(operation,))).groups == {F}
    slices = tuple(plans.ClusteringSlice(group=group, base_file="") for group in (G, H))
    plan = plans.ReplacePlan(
        operation="CLUSTER", clustering=plans.ClusteringPlan(groups=(plans.ClusteringGroup(slices=slices),))
    )
    assert other_of_clustering(at(6), plan).groups == {G, H}
    assert other_of_clustering(at(6), plans.ReplacePlan()).groups == frozenset()


def test_writes_that_only_add_to_the_logs_of_a_file_group_do_not_contradict_each_other():
    appends = Other(at(6), Operation.UPSERT, frozenset({F, G}), appended=frozenset({G}))
    assert conflicts(BEFORE, {G}, [appends], alone=False, appended={G}) == []
    for own, groups in ((set(), (G,)), ({G}, (F,))):  # one that reads rows of G; one with another group, F
        found = conflicts(BEFORE, {F, G} if own else {G}, [appends], alone=False, appended=own)
        assert [conflict.groups for conflict in found] == [groups]
    rebuilds = Other(at(6), Operation.INSERT_OVERWRITE, frozenset({G}))
    assert [found.groups for found in conflicts(BEFORE, {G}, [rebuilds], alone=False, appended={G})] == [(G,)]


def test_two_file_groups_of_one_bucket_contradict_each_other_though_both_are_logs():
    mine, theirs = (FileGroupId("oslo", f"00000007-{rest}") for rest in ("0000-0", "bbbb-0"))
    other = Other(at(6), Operation.UPSERT, frozenset({theirs}), appended=frozenset({theirs}))
    assert [found.groups for found in conflicts(BEFORE, {mine}, [other], False, {mine})] == [(theirs,)]


def test_a_compaction_leaves_logs_alone_that_are_completed_after_it_was_planned():
    planned = Other(at(6, Action.COMPACTION, ASKED), Operation.COMPACT, frozenset({G}))
    for completed in ("", at(7).requested):  # now, or already
        assert conflicts(BEFORE, {G}, [planned], False, {G}, completed) == []
    (found,) = conflicts(BEFORE, {G}, [planned], False, {G}, at(5).requested)  # it should have had them in its plan
    assert found.groups == (G,)


def test_what_a_commit_added_to_is_what_it_neither_rebuilt_nor_took_away():
    stats = tuple(
        WriteStat(file_id=name, path=f"oslo/{name}", partition="oslo", log_version=version)
        for name, version in (("f", 1), ("g", None), ("h", 1), ("g", 1))
    )
    commit = CommitMetadata(operation=Operation.UPSERT, stats={"oslo": stats}, replaced={"oslo": ("h",)})
    assert appended_groups(commit) == {F}


def test_a_long_list_of_file_groups_is_cut():
    groups = frozenset(FileGroupId("", f"id-{number}") for number in range(9))
    (found,) = conflicts(BEFORE, groups, [Other(at(6), Operation.UPSERT, groups)], alone=False)
    assert str(found).endswith("id-4 and 4 more")


def test_two_new_file_groups_of_one_bucket_contradict_each_other():
    mine, theirs = (FileGroupId("oslo", f"00000007-{rest}") for rest in ("aaaa-0", "bbbb-0"))
    other = Other(at(6), Operation.UPSERT, frozenset({theirs}))
    assert [found.groups for found in conflicts(BEFORE, {mine}, [other], alone=False)] == [(theirs,)]
    assert conflicts(BEFORE, {FileGroupId("rome", mine.file_id)}, [other], alone=False) == []
    assert conflicts(BEFORE, {FileGroupId("oslo", "00000008-aaaa-0")}, [other], alone=False) == []


def own_commit(*names: str) -> CommitMetadata:
    stats = tuple(WriteStat(file_id="g", path=f"oslo/{name}", partition="oslo") for name in names)
    return CommitMetadata(operation=Operation.UPSERT, stats={"oslo": stats})


def test_a_commit_that_was_made_on_ours_knew_of_it():
    first = Other(at(6), Operation.UPSERT, frozenset({G}), seen=frozenset({at(5).requested}))
    second = Other(at(7), Operation.UPSERT, frozenset({G}), seen=frozenset({at(6).requested}))
    third = Other(at(8), Operation.UPSERT, frozenset({G}), seen=frozenset({at(2).requested}))
    assert unaware(OWN, own_commit("g.parquet"), [third, second, first]) == [third]


def test_a_plan_that_takes_our_files_in_knew_of_them():
    def plan(*logs: str) -> Other:
        operation = plans.CompactionOperation(group=G, base_instant="1", base_file="g.parquet", log_files=logs)
        return other_of_compaction(at(6, Action.COMPACTION, ASKED), plans.CompactionPlan(operations=(operation,)))

    assert unaware(OWN, own_commit(".g.log.2"), [plan(".g.log.1", ".g.log.2")]) == []
    assert unaware(OWN, own_commit(".g.log.2"), [plan(".g.log.1")]) == [plan(".g.log.1")]


def test_a_commit_names_the_newest_it_was_made_on():
    many = timeline(*(at(number) for number in range(1, 31)))
    assert made_on(many).split(",") == [at(number).requested for number in range(21, 31)]
    assert made_on(timeline()) == ""
