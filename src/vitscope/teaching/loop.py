"""The one training loop: every teacher, one or several processes, CPU or GPU, exact resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.device import autocast, compute_dtype
from vitscope.errors import VitscopeError
from vitscope.teaching.checkpoint import load_checkpoint, save_checkpoint
from vitscope.teaching.distributed import anybody, barrier, mean_over_processes, rank, world
from vitscope.teaching.images import TrainingImages
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.optimiser import Optimiser, Rates
from vitscope.teaching.order import batches_from, step_seed
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson, Teacher

CHECKPOINT = "checkpoint.pt"


class Diverged(VitscopeError):
    """The loss or its gradient is not a number any more."""


@dataclass
class Point:
    """One point of the learning curve: means since the last point."""

    step: int
    images: int
    cpu_seconds: float
    loss: float
    logs: dict[str, float] = field(default_factory=dict)
    knn: dict[str, dict[str, Any]] = field(default_factory=dict)  # test set -> {cls, patch} -> accuracy per layer


@dataclass(frozen=True)
class Settings:
    """What a run is, apart from its teacher and data."""

    batch: int = 64
    seed: int = 0
    rates: Rates = field(default_factory=Rates)
    clip: float = 3.0  # largest norm of the gradient
    point_every: int = 100  # steps between points of the learning curve
    monitor_every: int = 1000  # steps between looks at the features
    save_seconds: float = 120.0  # between checkpoints
    workers: int = 0  # processes that decode images when they are not cached


class Run:
    """A teacher, its data and how far it has come; `train` goes on from there."""

    def __init__(
        self,
        folder: Path,
        teacher: Teacher,
        images: TrainingImages,
        schedule: Schedule,
        settings: Settings,
        *,
        identity: dict[str, Any],
        device: torch.device | None = None,
        monitor: Monitor | None = None,
        on_point: Callable[[Point], None] | None = None,
    ) -> None:
        self.folder, self.images, self.schedule, self.settings = folder, images, schedule, settings
        self.device = device or torch.device("cpu")
        self.teacher = teacher.to(self.device).train()
        self.optimiser = Optimiser(self.teacher, settings.rates)
        # float16 would need scaled losses; bfloat16 has float32's range
        self.dtype = torch.bfloat16 if compute_dtype(self.device) == torch.bfloat16 else torch.float32
        self.network: nn.Module = self.teacher
        if world() > 1:
            self.network = nn.parallel.DistributedDataParallel(self.teacher, broadcast_buffers=False)
        self.identity = identity
        self.monitor, self.on_point = monitor, on_point
        self.step = 0
        self.cpu_seconds = 0.0
        self.curve: list[Point] = []
        self._sums: dict[str, Tensor] = {}
        self._summed = 0

    # -- going on ---------------------------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool] | None = None) -> None:
        """Train to the end of the schedule, or until `stop` says so; a checkpoint is left in either case."""
        lessons = self.lessons()
        began, saved = time.process_time() - self.cpu_seconds, time.monotonic()
        while self.schedule.total is None or self.step < self.schedule.total:
            if stop is not None and anybody(stop()):
                break
            self.learn(next(lessons))
            self.cpu_seconds = time.process_time() - began
            if self.step % self.settings.point_every == 0 or self.step == self.schedule.total:
                self.note_point()
                self.cpu_seconds = time.process_time() - began
            if time.monotonic() - saved > self.settings.save_seconds:
                self.save()
                saved = time.monotonic()
        self.save()

    def lessons(self) -> Iterator[Lesson]:
        order = batches_from(self.step, len(self.images), self.settings.batch, self.settings.seed)
        return self.images.lessons(order, workers=self.settings.workers)

    def learn(self, lesson: Lesson) -> None:
        """One step."""
        torch.manual_seed(step_seed(self.settings.seed, self.step, rank()))
        progress = self.schedule.at(self.step)
        lesson = Lesson(
            lesson.images.to(self.device, non_blocking=True),
            None if lesson.labels is None else lesson.labels.to(self.device, non_blocking=True),
            lesson.captions,
        )
        with autocast(self.device, self.dtype):
            loss, logs = self.network(lesson)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.optimiser.parameters, self.settings.clip)
        if not torch.isfinite(norm):
            raise Diverged(
                f"the gradient is not finite at step {self.step}: the last good checkpoint is "
                f"'{self.folder / CHECKPOINT}'; resume with a smaller learning rate or more warm-up"
            )
        self.optimiser.step(progress.rate)
        self.teacher.after_step(progress)
        self.step += 1
        self._summed += 1
        for name, value in {"loss": loss.detach(), **logs}.items():
            self._sums[name] = self._sums.get(name, torch.zeros((), device=self.device)) + value.detach().float()

    # -- the learning curve -----------------------------------------------------------------------------------------

    def note_point(self) -> None:
        """Add the means since the last point to the learning curve, and k-NN when it is time."""
        logs = {name: float(mean_over_processes(total / self._summed)) for name, total in self._sums.items()}
        point = Point(self.step, self.step * self.settings.batch, round(self.cpu_seconds, 1), logs.pop("loss"), logs)
        last = self.step == self.schedule.total
        if self.monitor is not None and (self.step % self.settings.monitor_every == 0 or last):
            point.knn = {name: vars(scores) for name, scores in self.monitor(self.teacher.encoder).items()}
        self._sums, self._summed = {}, 0
        self.curve.append(point)
        if self.on_point is not None and rank() == 0:
            self.on_point(point)

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def save(self) -> None:
        if rank() == 0:
            state = {
                "identity": self.identity,
                "step": self.step,
                "cpu_seconds": self.cpu_seconds,
                "teacher": self.teacher.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "curve": [vars(point) for point in self.curve],
                "sums": self._sums,
                "summed": self._summed,
            }
            self.folder.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self.folder / CHECKPOINT, state)
        barrier()

    def resume(self, path: Path | None = None) -> bool:
        """Go on from the folder's checkpoint (or `path`), if there is one."""
        path = path or self.folder / CHECKPOINT
        if not path.exists():
            return False
        state = load_checkpoint(path, self.identity)
        self.teacher.load_state_dict(state["teacher"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        self.curve = [Point(**point) for point in state["curve"]]
        self._sums = {name: value.to(self.device) for name, value in state["sums"].items()}
        self._summed = state["summed"]
        return True
