"""Jobs on a Ray cluster: actors that keep their model warm, the same jobs, the same files.

Actors write into the store, which every node must see. With RAY_ADDRESS in the environment that cluster is used;
without it one is started on this machine, for this machine only, and stopped at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from vitscope.core.device import choose_device
from vitscope.core.errors import VitscopeError
from vitscope.core.files import MARK
from vitscope.core.progress import Progress
from vitscope.pipeline.engines.crew import Event, supervise
from vitscope.pipeline.plan import Job, Plan, Schedule
from vitscope.pipeline.store import Store
from vitscope.pipeline.worker import Worker

LOOK = 60.0  # seconds a node has to prove that it sees the data
ROOM = 120.0  # seconds after which nobody is waited for who has not begun while nobody works
PULSE = 1.0  # seconds between two looks at whether Ray is still there
HERE = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Ray:
    """A Ray cluster. processes: actors; as many as the cluster has GPUs or cores if not given."""

    processes: int | None = None

    def run(self, schedule: Schedule, store: Store, progress: Progress) -> None:
        ray = _import_ray()
        started = not ray.is_initialized()
        try:
            if started:
                _begin(ray)
            crew = Actors(ray, schedule.plan, store, self.processes, len(schedule.jobs))
            try:
                if len(ray.nodes()) > 1 or "RAY_ADDRESS" in os.environ:
                    prove_sight(ray, schedule.plan, store)  # while the actors import what they need
                crew.begin()
                title = f"{len(schedule.jobs)} jobs on {len(crew.members)} Ray workers"
                with progress(title, sum(job.images for job in schedule.jobs)) as advance:
                    supervise(schedule, crew, store, advance)
            finally:
                crew.end()
        finally:
            if started:
                ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if os.environ.get("RAY_ADDRESS", "127.0.0.1:0").rpartition(":")[0] in HERE:
        # Ray takes 127.0.0.1 for the address that others know this machine by, unless it may not form clusters: what is
        # started for this machine alone must be heard by nobody else.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise VitscopeError("engine = 'ray' needs Ray: pip install 'vitscope[ray]', or use engine = 'local'") from error
    return ray


def _begin(ray: Any) -> None:
    try:
        if "RAY_ADDRESS" in os.environ:
            ray.init(log_to_driver=False)
        else:
            # "local": or else Ray looks for the cluster that this machine ran last, which may have ended without a word
            ray.init("local", log_to_driver=False, include_dashboard=False, _node_ip_address="127.0.0.1")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = os.environ.get("RAY_ADDRESS", "this machine")
        raise VitscopeError(f"no Ray cluster at {where}: {str(error)[:200]}; check RAY_ADDRESS") from error


def prove_sight(ray: Any, plan: Plan, store: Store) -> None:
    """Every node must see the store, the weights and the data, at the same paths; the first that does not is told."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def missing_of(paths: list[str]) -> tuple[str, list[str]]:
        """Sent by value, as a function within a function is: a node looks without importing this package first."""
        import socket
        from pathlib import Path

        return socket.gethostname(), [path for path in paths if not Path(path).exists()]

    wanted = [
        store.root / MARK,
        *(spec.weights for spec in plan.models if spec.weights is not None),
        *_first_files(plan),
    ]
    paths = [str(Path(path).absolute()) for path in wanted]
    look = ray.remote(num_cpus=0, max_retries=1)(missing_of)
    asked = {}
    for node in ray.nodes():
        if node["Alive"]:
            pinned = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[look.options(scheduling_strategy=pinned).remote(paths)] = node["NodeManagerAddress"]
    ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK)
    if late:
        raise VitscopeError(f"the node {asked[late[0]]} did not answer within {LOOK:.0f} seconds: check the cluster")
    for answer in ready:
        host, missing = ray.get(answer)
        if missing:
            raise VitscopeError(
                f"the node {asked[answer]} ({host}) does not see {missing[0]}: every node needs the store, the weights "
                "and the data at the same paths, such as a shared folder"
            )


def _first_files(plan: Plan) -> list[Path]:
    """One file of each pass: enough to see that a dataset is there."""
    found = []
    for dataset in plan.datasets:
        for name in ("samples", "train", "test", "database", "images"):
            samples = getattr(dataset, name, None)
            if samples is not None and len(samples):
                found.append(samples[0].path)
        found += [sequence.frames[0] for sequence in getattr(dataset, "sequences", ())[:1]]
    return found


class Actors:
    """A crew of Ray actors, each asking for what a single node can give."""

    def __init__(self, ray: Any, plan: Plan, store: Store, count: int | None, jobs: int) -> None:
        self.ray, self.root = ray, str(store.root.absolute())
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        on_gpu = choose_device(plan.device).type == "cuda" or (
            plan.device == "auto" and any(node.get("GPU", 0) >= 1 for node in nodes)
        )
        slots = [int(node.get("GPU" if on_gpu else "CPU", 0)) for node in nodes]
        count = max(1, min(count or sum(slots), jobs))
        per_node = max(1, -(-count // max(1, sum(slot > 0 for slot in slots))))
        least = min((int(node.get("CPU", 1)) for node, slot in zip(nodes, slots, strict=True) if slot), default=1)
        self.cores = max(1, least // per_node)
        self.gpus = 1 if on_gpu else 0
        self.device = "cuda" if on_gpu else plan.device
        self.shared = ray.put(plan)
        self.actor = ray.remote(num_cpus=self.cores, num_gpus=self.gpus)(ActorWorker)
        self.members: dict[int, Any] = {number: self._new() for number in range(count)}
        self.starting: dict[Any, int] = {}  # answers of those who have not begun yet
        self.pending: dict[Any, int] = {}  # answers of those who work

    @property
    def workers(self) -> Sequence[int]:
        late = set(self.starting.values())
        return [number for number in self.members if number not in late]

    def _new(self) -> Any:
        """It is there as soon as some node has room for it; until then the others go on."""
        return self.actor.remote(self.shared, self.root, self.cores, self.device)

    def begin(self) -> None:
        """Nothing is touched by an actor before this."""
        self.starting = {actor.begin.remote(): number for number, actor in self.members.items()}

    def _replace(self, number: int) -> None:
        self.members[number] = self._new()
        self.starting[self.members[number].begin.remote()] = number

    def give(self, worker: int, job: Job) -> None:
        self.pending[self.members[worker].do.remote(job)] = worker

    def wait(self) -> list[Event]:
        answers = [*self.pending, *self.starting]
        since = time.monotonic()
        while True:
            ready, _ = self.ray.wait(answers, num_returns=1, timeout=PULSE)
            self._refuse_without_ray()
            if ready:
                return [event for answer in ready for event in self._hear(answer)]
            if self.pending or time.monotonic() - since < ROOM:
                continue
            raise VitscopeError(
                f"no worker could begin on the Ray cluster within {ROOM:.0f} seconds: see whether its nodes have "
                f"{self.cores} free cores{' and a free GPU' if self.gpus else ''}; what is done is kept"
            )

    def _refuse_without_ray(self) -> None:
        """Ray ends a process whose own raylet is gone, without a word, after some seconds: say it before."""
        here = self.ray.get_runtime_context().get_node_id()
        started = getattr(self.ray._private.worker, "_global_node", None)  # what Ray runs for this process, if it does
        alive = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}
        if here not in alive or (started is not None and started.dead_processes()):
            raise VitscopeError(
                "Ray's own process on this machine (the raylet) has ended, perhaps for want of memory: what is done is "
                "kept, the same command goes on from there"
            )

    def _hear(self, answer: Any) -> list[Event]:
        errors = self.ray.exceptions
        begun = answer in self.starting
        worker = (self.starting if begun else self.pending).pop(answer)
        try:
            error = self.ray.get(answer)
        except errors.RayTaskError as error:
            return [Event(worker, "failed", RuntimeError(str(error)))]
        except (errors.RayActorError, errors.RaySystemError):
            self._replace(worker)
            return [] if begun else [Event(worker, "lost")]
        if begun:
            return []
        return [Event(worker, "done") if error is None else Event(worker, "failed", error)]

    def end(self) -> None:
        for actor in self.members.values():
            self.ray.kill(actor)


class ActorWorker:
    """What lives in a Ray actor."""

    def __init__(self, plan: Plan, root: str, cores: int, device: str) -> None:
        torch.set_num_threads(cores)
        threadpool_limits(cores)
        self.plan, self.root, self.device = plan, root, device

    def begin(self) -> None:
        """Open the store; answers as soon as there is somebody to answer."""
        self.worker = Worker(self.plan, Store(self.root), device=self.device)

    def do(self, job: Job) -> VitscopeError | None:
        """Do a job; returns the error if it was a foreseen one."""
        try:
            self.worker.do(job)
        except VitscopeError as error:
            return error
        return None
