"""The one training loop: every teacher, one or several processes, CPU or GPU, exact resume."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vitscope.core.device import autocast, compute_dtype, keep_freed_memory
from vitscope.core.errors import VitscopeError
from vitscope.core.files import write_atomically
from vitscope.teaching.checkpoint import DAMAGED, damaged, load_checkpoint, save_checkpoint
from vitscope.teaching.distributed import anybody, barrier, mean_over_processes, rank, world
from vitscope.teaching.images import TrainingImages, batches_from, step_seed
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.optimiser import Optimiser, Rates
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson, Teacher, follow, follower
from vitscope.teaching.trackers import Trackers
from vitscope.teaching.vit import ViT

CHECKPOINT = "checkpoint.pt"
METRICS = "metrics.jsonl"


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
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # what the network computes in; auto: by the device
    accumulate: int = 1  # parts into which a batch is divided
    layer_decay: float = 1.0  # factor of the rate from each block to the one before it
    ema: float = 0.0  # momentum of the weights' moving average, which is shipped; 0: there is none
    point_every: int = 100  # steps between points of the learning curve
    monitor_every: int = 1000  # steps between looks at the features; 0: never
    save_seconds: float = 120.0  # between checkpoints
    save_every: int = 0  # steps between checkpoints that are kept beside the last one; 0: none
    keep: int = 0  # how many of those are kept, the newest; 0: all
    workers: int = 0  # processes that decode images when they are not cached


def precision_of(asked: str, device: torch.device) -> torch.dtype:
    """float16 would need scaled losses; bfloat16 has float32's range."""
    if asked == "auto":
        asked = "bfloat16" if compute_dtype(device) == torch.bfloat16 else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[asked]


def divided(lesson: Lesson, parts: int) -> list[Lesson]:
    """The lesson in equal parts."""
    count = len(lesson.images)
    if count % parts:
        raise VitscopeError(f"{count} images per process cannot be divided into {parts} parts: use a multiple")
    size = count // parts
    return [lesson.part(slice(i * size, (i + 1) * size)) for i in range(parts)]


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
        on_aside: Callable[[Run], object] | None = None,
        trackers: Trackers | None = None,
    ) -> None:
        self.folder, self.images, self.schedule, self.settings = folder, images, schedule, settings
        self.device = device or torch.device("cpu")
        self.teacher = teacher.to(self.device).train()
        self.optimiser = Optimiser(self.teacher, settings.rates, settings.layer_decay)
        self.average = follower(self.teacher.encoder) if settings.ema else None
        self.dtype = precision_of(settings.precision, self.device)
        self.network: nn.Module = self.teacher
        if world() > 1:
            self.network = nn.parallel.DistributedDataParallel(self.teacher, broadcast_buffers=False)
        self.identity = identity
        self.monitor, self.on_point, self.on_aside, self.trackers = monitor, on_point, on_aside, trackers
        self.step = 0
        self.cpu_seconds = 0.0
        self.curve: list[Point] = []
        self.changes: list[dict[str, Any]] = []  # of settings, since the run began
        self._sums: dict[str, Tensor] = {}
        self._summed = 0

    @property
    def encoder(self) -> ViT:
        """The network to look at and to ship."""
        return self.average if self.average is not None else self.teacher.encoder

    # -- going on ---------------------------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool] | None = None) -> None:
        """Train to the end of the schedule, or until `stop` says so; a checkpoint is left in either case."""
        keep_freed_memory()
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
            every = self.settings.save_every
            if (due := every > 0 and self.step % every == 0) or time.monotonic() - saved > self.settings.save_seconds:
                self.save()
                saved = time.monotonic()
                if due:
                    self.set_aside()
        self.save()

    def lessons(self) -> Iterator[Lesson]:
        order = batches_from(self.step, len(self.images), self.settings.batch, self.settings.seed)
        return self.images.lessons(order, workers=self.settings.workers)

    def learn(self, lesson: Lesson) -> None:
        """One step."""
        torch.manual_seed(step_seed(self.settings.seed, self.step, rank()))
        progress = self.teacher.progress = self.schedule.at(self.step)
        parts = divided(lesson, self.settings.accumulate)
        watched: dict[str, Tensor] = {}
        for number, part in enumerate(parts):
            last = number == len(parts) - 1  # processes tell each other their gradients once
            with nullcontext() if last or world() == 1 else self.network.no_sync():  # type: ignore[operator]
                with autocast(self.device, self.dtype):
                    loss, logs = self.network(part.to(self.device))
                (loss / len(parts)).backward()
            for name, value in {"loss": loss, **logs}.items():
                watched[name] = watched.get(name, 0) + value.detach().float() / len(parts)
        norm = nn.utils.clip_grad_norm_(self.optimiser.parameters, self.settings.clip)
        if not torch.isfinite(norm):
            raise Diverged(f"the gradient is not finite at step {self.step}: {self.remedy()}")
        self.optimiser.step(progress.rate)
        self.teacher.after_step(progress)
        if self.average is not None:
            follow(self.average, self.teacher.encoder, self.settings.ema)
        self.step += 1
        self._summed += 1
        for name, value in watched.items():
            self._sums[name] = self._sums.get(name, torch.zeros((), device=self.device)) + value

    def remedy(self) -> str:
        """What to do about a loss that has gone."""
        path = self.folder / CHECKPOINT
        if path.exists():
            return f"'{path}' is the last good checkpoint; go on from it with a smaller rate (--change), or begin again"
        return "there is no checkpoint yet; begin again with a smaller learning rate or more warm-up"

    # -- the learning curve -----------------------------------------------------------------------------------------

    def note_point(self) -> None:
        """Add the means since the last point to the learning curve, and k-NN when it is time."""
        logs = {name: float(mean_over_processes(total / self._summed)) for name, total in self._sums.items()}
        point = Point(self.step, self.step * self.settings.batch, round(self.cpu_seconds, 1), logs.pop("loss"), logs)
        last = self.step == self.schedule.total
        every = self.settings.monitor_every
        if self.monitor is not None and every and (self.step % every == 0 or last):
            point.knn = {name: vars(scores) for name, scores in self.monitor(self.encoder).items()}
        self._sums, self._summed = {}, 0
        self.curve.append(point)
        self.tell(point)
        if self.trackers is not None:
            self.trackers.tell(point.step, self.scalars(point))
        if self.on_point is not None and rank() == 0:
            self.on_point(point)

    def rate_at(self, point: Point) -> float:
        """AdamW's learning rate at the step that led to a point."""
        return self.settings.rates.others * self.schedule.at(max(0, point.step - 1)).rate

    def scalars(self, point: Point) -> dict[str, float]:
        """A point as named numbers; of k-NN the best layer of each token."""
        knn = {
            f"knn/{test}/{token}": max(values)
            for test, scores in point.knn.items()
            for token, values in scores.items()
            if values
        }
        return {"loss": point.loss, "rate": self.rate_at(point), "images": float(point.images), **point.logs, **knn}

    def tell(self, *points: Point, anew: bool = False) -> None:
        """Add points to the metrics file, one JSON object per line; or write it anew."""
        if rank() != 0:
            return
        path = self.folder / METRICS
        lines = "".join(json.dumps({**vars(point), "rate": self.rate_at(point)}) + "\n" for point in points)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("w" if anew else "a", encoding="utf-8") as file:
                file.write(lines)
        except OSError as error:
            raise VitscopeError(
                f"could not write {path}: {error.strerror}: make room and run the same command again; the last "
                "checkpoint stays"
            ) from error

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def save(self) -> None:
        if rank() == 0:
            state = {
                "identity": self.identity,
                "step": self.step,
                "cpu_seconds": self.cpu_seconds,
                "teacher": self.teacher.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "average": None if self.average is None else self.average.state_dict(),
                "changes": self.changes,
                "curve": [vars(point) for point in self.curve],
                "sums": self._sums,
                "summed": self._summed,
            }
            self.folder.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self.folder / CHECKPOINT, state)
        barrier()

    def set_aside(self) -> None:
        """Keep the checkpoint that was just written under the number of its step, and only the newest of those.

        `on_aside` may leave a model card beside it, step-N.toml: such cards are a series that a study draws over steps.
        """
        if rank() == 0:
            aside = self.folder / f"checkpoint-{self.step}.pt"
            write_atomically(aside, lambda to: shutil.copyfile(self.folder / CHECKPOINT, to))
            if self.on_aside is not None:
                self.on_aside(self)
            if self.settings.keep:
                mine = [path for path in self.folder.glob("checkpoint-*.pt") if path.stem[11:].isdecimal()]
                numbered = sorted(mine, key=lambda path: int(path.stem[11:]))
                for old in numbered[: -self.settings.keep]:
                    for suffix in (".toml", ".safetensors"):
                        self.folder.joinpath(f"step-{old.stem[11:]}{suffix}").unlink(missing_ok=True)
                    old.unlink()

    def resume(self, path: Path | None = None, *, changeable: Sequence[str] = (), change: bool = False) -> bool:
        """Go on from the folder's checkpoint (or `path`), if there is one.

        changeable: what of the identity may be another than it was, if that is wanted (`change`), and is recorded.
        """
        path = path or self.folder / CHECKPOINT
        if not path.exists():
            return False
        fixed = {k: v for k, v in self.identity.items() if not (change and k in changeable)}
        state = load_checkpoint(path, fixed, changeable)
        try:
            self._take(state)
        except DAMAGED as error:
            raise damaged(path) from error
        for name in changeable if change else ():
            before, after = state["identity"].get(name, self.identity[name]), self.identity[name]
            if before != after:
                self.changes.append({"step": self.step, "setting": name, "before": before, "after": after})
        self.tell(*self.curve, anew=True)
        every = self.settings.save_every
        if every > 0 and self.step and self.step % every == 0 and path == self.folder / CHECKPOINT:
            self.set_aside()  # once more: whatever ended the run may have ended it while it did
        return True

    def _take(self, state: dict[str, Any]) -> None:
        """Be where the state was saved."""
        self.teacher.load_state_dict(state["teacher"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.average is not None and state.get("average") is not None:
            self.average.load_state_dict(state["average"])
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        self.curve = [Point(**point) for point in state["curve"]]
        self.changes = list(state.get("changes", []))
        self._sums = {name: value.to(self.device) for name, value in state["sums"].items()}
        self._summed = state["summed"]
