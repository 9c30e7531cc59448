"""From models, datasets and analyses to jobs: what decides a number decides its key, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import make_photos
from vitscope.attention.analysis import Attention
from vitscope.core.analysis import Analysis, shards_of
from vitscope.core.errors import VitscopeError
from vitscope.data import openers
from vitscope.data.dataset import Dataset
from vitscope.features.analysis import Features
from vitscope.models.spec import Spec, resolve
from vitscope.pipeline.plan import Job, Plan, Schedule, make_plan
from vitscope.pipeline.registry import default_analyses
from vitscope.pipeline.store import Store
from vitscope.tasks.knn import Knn
from vitscope.tasks.linear_probe import Probe
from vitscope.tasks.retrieval import Retrieval

NAME = "random:vit_tiny_patch16_224"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("data") / "photos", count=150, classes=3)


def spec(seed: int = 0, size: int = 32, title: str = "A") -> Spec:
    return resolve(NAME, size=size, seed=seed, title=title)


def keys(plan: Plan) -> set[str]:
    """Under which the states of all passes lie."""
    return {key for one in plan.passes for key in one.watch}


def digests(plan: Plan) -> set[str]:
    return {task.digest for task in plan.tasks}


def test_shards_follow_from_the_list_alone() -> None:
    for count in (0, 1, 63, 64, 65, 200, 1024, 1025, 5000, 100_000, 1_281_167):
        shards = shards_of(count)
        assert [i for shard in shards for i in (shard.start, shard.stop - 1)] == sorted(
            i for shard in shards for i in (shard.start, shard.stop - 1)
        )
        assert sum(len(shard) for shard in shards) == count
        assert all(len(shard) <= 2560 for shard in shards)
        assert all(len(shard) % 32 == 0 for shard in shards[:-1])  # whole batches: float32's last digit
    assert len(shards_of(5000)) == 16
    assert len(shards_of(1_281_167)) == 501


def test_a_title_or_a_place_decides_nothing(photos: Path) -> None:
    dataset = openers.images(photos)
    plan = make_plan([spec()], [dataset], [Attention(), Features()])
    other = make_plan([spec(title="B")], [dataset.titled("elsewhere")], [Attention(), Features()], workers=2)
    assert digests(plan) == digests(other)
    assert keys(plan) == keys(other)


@pytest.mark.parametrize("change", ["seed", "size", "order", "limit", "one image", "one label", "settings"])
def test_what_changes_the_numbers_changes_the_key(photos: Path, change: str) -> None:
    def plan(model: Spec, dataset: Dataset, *analyses: Analysis) -> Plan:
        return make_plan([model], [dataset], analyses or [Attention(), Features()])

    before = plan(spec(), openers.images(photos))
    if change == "seed":
        after = plan(spec(seed=1), openers.images(photos))
    elif change == "size":
        after = plan(spec(size=48), openers.images(photos))
    elif change == "order":
        after = plan(spec(), openers.images(photos, seed=1))
    elif change == "limit":
        after = plan(spec(), openers.images(photos, limit=149))
    elif change == "one image":
        photo = min(photos.rglob("*.png"))
        original = photo.read_bytes()
        try:
            Image.new("RGB", (64, 64), "red").save(photo)
            after = plan(spec(), openers.images(photos))
        finally:
            photo.write_bytes(original)
    elif change == "one label":
        labels = {path.relative_to(photos).as_posix(): path.parent.name for path in photos.rglob("*.png")}
        after = plan(spec(), openers.images(photos, labels=labels | {min(labels): "class2"}))
    else:
        after = plan(spec(), openers.images(photos), Attention(), Features(cluster_seeds=4))
        assert keys(after) == keys(before)  # the states are the same: only what is made of them is not
        (attention,) = (task.digest for task in before.tasks if isinstance(task.analysis, Attention))
        assert digests(after) & digests(before) == {attention}
        return
    assert not digests(after) & digests(before)
    assert not keys(after) & keys(before)


def test_another_dataset_leaves_the_jobs_of_the_first_alone(photos: Path, tmp_path: Path) -> None:
    first, second = openers.images(photos), openers.images(make_photos(tmp_path / "more", count=9))
    alone, both = (make_plan([spec()], data, [Attention()]) for data in ([first], [first, second]))
    assert digests(alone) < digests(both)
    assert keys(alone) < keys(both)


def test_analyses_that_watch_one_stream_share_its_pass(photos: Path) -> None:
    plan = make_plan([spec()], [openers.images(photos)], [Attention(), Features()])
    assert len(plan.passes) == 1
    labelled = make_plan([spec()], [openers.labelled(photos)], [Knn(), Probe()])
    assert len(labelled.passes) == 2  # train and test
    assert all(len(one.watch) == 1 for one in labelled.passes)  # features, for both


def test_protocols_that_see_other_pixels_do_not_share_a_pass(photos: Path) -> None:
    plan = make_plan([spec()], [openers.retrieval(photos)], [Retrieval(), Retrieval(protocol="paper")])
    corrected, paper = ({key for named in task.keys.values() for key, _ in named.values()} for task in plan.tasks)
    assert not corrected & paper


def test_jobs_are_shards_and_what_waits_for_them(photos: Path) -> None:
    plan = make_plan([spec(), spec(seed=1, title="B")], [openers.images(photos)], [Attention(), Features()])
    jobs = plan.jobs(None)
    maps = [job for job in jobs if job.kind == "map"]
    assert [(job.model, job.shard, job.images) for job in maps] == [
        (0, 0, 64), (0, 1, 64), (0, 2, 22), (1, 0, 64), (1, 1, 64), (1, 2, 22),
    ]  # fmt: skip
    for job in jobs:
        if job.kind == "reduce":
            assert job.after == {other.number for other in maps if other.model == job.model}
    assert sum(job.kind == "reduce" for job in jobs) == 4


def test_what_the_store_has_is_left_out(photos: Path, tmp_path: Path) -> None:
    plan, store = make_plan([spec()], [openers.images(photos)], [Attention()]), Store(tmp_path / "store")
    (key,) = keys(plan)
    store.write_state(key, 1, {}, skipped={}, about={})
    assert [job.shard for job in plan.jobs(store) if job.kind == "map"] == [0, 2]


def test_the_same_dataset_twice_counts_once_and_the_same_title_is_numbered(photos: Path, tmp_path: Path) -> None:
    other = make_photos(tmp_path / "photos", count=9)
    plan = make_plan([spec()], [openers.images(p) for p in (photos, photos, other)], [Attention()])
    assert [dataset.title for dataset in plan.datasets] == ["photos", "photos (2)"]
    assert [dataset.count for dataset in plan.datasets] == [150, 9]


def test_plans_of_nothing_or_of_the_same_twice_are_refused(photos: Path) -> None:
    dataset = openers.images(photos)
    with pytest.raises(VitscopeError, match="nothing to do: none of the analyses asked for takes images"):
        make_plan([spec()], [dataset], [Knn()])
    with pytest.raises(VitscopeError, match="'attention' is asked for twice with the same settings"):
        make_plan([spec()], [dataset], [Attention(), Attention()])


def test_default_analyses_are_those_that_the_data_allow() -> None:
    assert {a.name for a in default_analyses({"images"})} == {
        "attention",
        "writes",
        "features",
        "calibration",
        "tokens",
        "pictures",
    }
    assert [a.name for a in default_analyses({"labelled"}, names={"probe", "video"})] == ["probe"]


# -- the schedule ------------------------------------------------------------------------------------------------


@pytest.fixture
def schedule(photos: Path) -> Schedule:
    """Two models of three shards each, and a reduction that waits for each three."""
    plan = make_plan([spec(), spec(seed=1, title="B")], [openers.images(photos)], [Attention()])
    return Schedule(plan, plan.jobs(None))


def drain(schedule: Schedule) -> list[Job]:
    """Do everything that can be done."""
    done = []
    while (job := schedule.next()) is not None:
        schedule.done(job)
        done.append(job)
    return done


def test_nothing_is_handed_out_before_what_it_needs(schedule: Schedule) -> None:
    given = []
    while (job := schedule.next()) is not None:
        given.append(job)
    assert {job.kind for job in given} == {"map"}
    for job in given[:3]:
        schedule.done(job)
    last = schedule.next()
    assert last is not None
    assert (last.kind, last.model) == ("reduce", 0)
    assert schedule.next() is None
    assert not schedule.finished


def test_a_worker_gets_jobs_of_the_model_it_has_loaded(schedule: Schedule) -> None:
    assert [job.model for _ in range(3) if (job := schedule.next(1))] == [1, 1, 1]
    other = schedule.next(1)
    assert other is not None
    assert other.model == 0


def test_a_lost_job_is_given_again_and_given_up_after_three_times(schedule: Schedule) -> None:
    first = schedule.next()
    assert first is not None
    for again in (True, True, False):
        assert schedule.give_back(first, "its worker was lost") is again
        if again:
            assert schedule.next() == first  # before anything else
    ((job, why),) = schedule.failures
    assert job == first
    assert "A on photos, images 1 to 64: its worker was lost 3 times" in str(why)
    assert {job.model for job in drain(schedule)} == {1}  # the rest goes on
    assert schedule.finished
    assert schedule.given_again() == []


def test_what_was_lost_once_is_told(schedule: Schedule) -> None:
    first = schedule.next()
    assert first is not None
    schedule.give_back(first, "its worker was lost")
    assert len(drain(schedule)) == len(schedule.jobs)
    assert schedule.given_again() == ["A on photos, images 1 to 64"]


def test_a_failure_takes_its_pass_and_what_waits_for_it_along(schedule: Schedule) -> None:
    first = schedule.next()
    assert first is not None
    schedule.fail(first, VitscopeError("bad image"))
    done = drain(schedule)
    assert {job.model for job in done} == {1}
    assert len(done) == 4
    assert schedule.finished


def test_a_job_is_the_same_in_every_process(schedule: Schedule) -> None:
    again = Schedule(schedule.plan, schedule.plan.jobs(None))
    assert again.jobs == schedule.jobs
    assert replace(schedule.jobs[0]) == again.jobs[0]
