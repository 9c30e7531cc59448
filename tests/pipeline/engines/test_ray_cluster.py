"""A real Ray cluster of two nodes on this machine's loopback address: equal results, and losses that cost a shard."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.conftest import make_photos
from vitscope import Attention, Features, Local, Ray, evaluate, images
from vitscope.api import StudyResults
from vitscope.core.errors import VitscopeError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MODEL = "random:vit_tiny_patch16_224"
SHAPE: dict[str, Any] = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six shards of images."""
    return make_photos(tmp_path_factory.mktemp("data") / "photos", count=384)


@contextmanager
def two_nodes(second: bool = True) -> Iterator[Any]:
    """A cluster whose nodes have one core each; RAY_ADDRESS names it."""
    import ray
    from ray._private.services import get_node_ip_address
    from ray.cluster_utils import Cluster

    assert get_node_ip_address() == "127.0.0.1", "Ray would talk to others than this machine"
    cluster = Cluster(initialize_head=True, head_node_args={**SHAPE, "include_dashboard": False})
    before = os.environ.get("RAY_ADDRESS")
    try:
        if second:
            cluster.add_node(**SHAPE)
        cluster.wait_for_nodes()
        assert cluster.address.startswith("127.0.0.1:")
        os.environ["RAY_ADDRESS"] = cluster.address
        yield cluster
    finally:
        os.environ.pop("RAY_ADDRESS")
        if before is not None:
            os.environ["RAY_ADDRESS"] = before
        ray.shutdown()
        cluster.shutdown()


def run(photos: Path, store: Path, engine: Local | Ray) -> StudyResults:
    analyses = [Attention(), Features()]
    results = evaluate(MODEL, on=images(photos), analyses=analyses, store=store, engine=engine)
    results.save(store)
    return results


@pytest.fixture(scope="module")
def here(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the same evaluation in this process."""
    store = tmp_path_factory.mktemp("here") / "store"
    run(photos, store, Local())
    return store


def same_bytes(store: Path, other: Path) -> None:
    for name in ("results.parquet", "maps.safetensors"):
        assert (store / name).read_bytes() == (other / name).read_bytes(), name


def traced(store: Path) -> int:
    log = store / "log.jsonl"
    return log.read_text().count('"traced"') if log.exists() else 0


def meanwhile(store: Path, do: Callable[[], object], after: int = 1) -> Thread:
    """Do something as soon as so many shards are done."""

    def wait() -> None:
        end = time.monotonic() + 300
        while traced(store) < after and time.monotonic() < end:
            time.sleep(0.02)
        do()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    return thread


def workers() -> list[int]:
    """Processes of our actors on this machine."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "ray::ActorWorker" in line]


def test_two_nodes_share_one_model_and_one_dataset_and_give_the_same_bytes(
    photos: Path, here: Path, tmp_path: Path
) -> None:
    with two_nodes():
        run(photos, tmp_path / "store", Ray())
        same_bytes(tmp_path / "store", here)
        before = traced(tmp_path / "store")
        run(photos, tmp_path / "store", Ray())  # nothing is left to do
        assert traced(tmp_path / "store") == before == 6


def test_a_killed_actor_costs_its_shard_only(photos: Path, here: Path, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill() -> None:
        killed.append(workers()[0])
        os.kill(killed[0], signal.SIGKILL)

    with two_nodes():
        thread = meanwhile(tmp_path / "store", kill)
        results = run(photos, tmp_path / "store", Ray())
        thread.join(10)
    assert killed
    assert any("was lost" in note for note in results.notes)
    same_bytes(tmp_path / "store", here)


def test_a_lost_node_costs_its_shard_only(photos: Path, here: Path, tmp_path: Path) -> None:
    with two_nodes() as cluster:
        node = next(node for node in cluster.list_all_nodes() if not node.is_head())
        thread = meanwhile(tmp_path / "store", lambda: cluster.remove_node(node, allow_graceful=False))
        results = run(photos, tmp_path / "store", Ray())
        thread.join(30)
        assert len(cluster.list_all_nodes()) == 1
    assert any("was lost" in note for note in results.notes)
    same_bytes(tmp_path / "store", here)


BLIND = """
import sys, time
import ray
from ray._private.node import Node
from ray._private.parameter import RayParams

(address,) = sys.argv[1:]
shape = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 << 20, "gcs_address": address}
shape |= {"node_manager_port": 0, "min_worker_port": 0, "max_worker_port": 0, "include_log_monitor": False}
Node(RayParams(**shape), head=False)
time.sleep(120)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root to hide a folder from a node")
def test_a_node_that_does_not_see_the_data_is_told_at_the_start(photos: Path, tmp_path: Path) -> None:
    """The second node lives among mounts of its own, in which the images' folder is empty."""
    with two_nodes(second=False) as cluster:
        start = f'mount -t tmpfs none {photos} && exec "$0" -c "$1" {cluster.address}'
        node = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start, sys.executable, BLIND], start_new_session=True
        )
        try:
            import ray

            ray.init(log_to_driver=False)
            end = time.monotonic() + 90
            while sum(one["Alive"] for one in ray.nodes()) < 2:
                assert time.monotonic() < end, "the second node did not come"
                time.sleep(0.2)
            assert any(photos.iterdir())
            with pytest.raises(VitscopeError, match=r"does not see .*every node needs the store"):
                run(photos, tmp_path / "store", Ray())
            assert traced(tmp_path / "store") == 0
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait(timeout=30)


def test_a_raylet_that_dies_is_told_and_the_same_command_goes_on(photos: Path, tmp_path: Path) -> None:
    """Ray itself would end the command after a while, with exit status 1 and no reason."""

    def command(store: Path, *options: str) -> list[str]:
        program = str(Path(sys.executable).with_name("vitscope"))
        return [program, "attention", MODEL, "--images", str(photos), "--out", str(store), *options]

    store = tmp_path / "store"
    killed: list[int] = []
    divided = subprocess.Popen(
        command(store, "--engine", "ray", "--processes", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def kill() -> None:
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(maxsplit=2) for line in listed.splitlines()]
        killed.extend(int(pid) for pid, parent, name in rows if (int(parent), name) == (divided.pid, "raylet"))
        os.kill(killed[0], signal.SIGKILL)

    thread = meanwhile(store, kill)
    _, said = divided.communicate(timeout=300)
    thread.join(10)
    assert killed
    assert divided.returncode == 2, said[-2000:]
    assert "the raylet) has ended" in said.splitlines()[-1]
    assert 0 < traced(store) < 6
    for where in (store, tmp_path / "alone"):
        subprocess.run(command(where), check=True, capture_output=True, timeout=300)
    same_bytes(store, tmp_path / "alone")
    assert traced(store) == 6
