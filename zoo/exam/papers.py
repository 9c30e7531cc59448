"""What is asked: held-out renders, the same for every network, several times over with other seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vitscope.core.errors import VitscopeError
from vitscope.core.progress import Progress, silent
from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.samples import SampleList
from vitscope.menagerie import World, film, pair, play, render
from zoo.exam.rendered import keypoints_of, samples_of, video_of

# What is looked at to decide something (which recipe, which layer, when to stop) is flattered by the decision: figures
# for others are measured on seeds that no decision ever saw.
Seeds = Literal["choose", "report"]


@dataclass(frozen=True)
class Sizes:
    """How much is asked; all but the bank once per seed."""

    seeds: int = 3
    bank: int = 4000  # labelled pictures of the taught world, among which neighbours are looked for
    queries: int = 1008  # of the nature-like and of the appearance-free world each
    parts: int = 320  # pictures with part masks, for clusters of parts and for attention
    pairs: int = 240  # of keypoints
    films: int = 16  # one for each species; films differ more than anything else
    frames: int = 12  # of each film

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise VitscopeError(f"{self.seeds} seed cannot tell how far a figure could be off: use 2 or more")

    @property
    def pictures(self) -> int:
        """That are rendered, and that go through each network."""
        return self.bank + self.seeds * (2 * self.queries + self.parts + 2 * self.pairs + self.films * self.frames)


@dataclass(frozen=True)
class Paper:
    """The questions of one seed. `nat` is nature-like, `unc` appearance-free: there nothing but shape tells species."""

    nat: SampleList
    unc: SampleList
    parts: SampleList
    pairs: KeypointSet
    films: VideoSet


@dataclass(frozen=True)
class Papers:
    """bank: pictures of the training split, as is usual for k-NN; no picture of a paper was ever learned from."""

    bank: SampleList
    papers: tuple[Paper, ...]
    sizes: Sizes


def set_papers(sizes: Sizes, size: int, progress: Progress = silent, *, seeds: Seeds = "choose") -> Papers:
    """Render everything. size: edge of the pictures in pixels; films are twice as high, as in the exported world."""
    first = "" if seeds == "choose" else "report-"
    nature, plain = World(), World(correlation=0.0)
    with progress("rendering", sizes.pictures) as advance:

        def pictures(world: World, split: str, count: int, *, parts: bool = False) -> SampleList:
            made = samples_of((render(world.scene(split, i), size) for i in range(count)), parts=parts)
            advance(count)
            return made

        def paper(seed: int) -> Paper:
            nat, unc = (
                pictures(nature, f"{first}nat-{seed}", sizes.queries),
                pictures(plain, f"{first}unc-{seed}", sizes.queries),
            )
            parts = pictures(nature, f"{first}parts-{seed}", sizes.parts, parts=True)
            pairs = keypoints_of(pair(nature, f"{first}pairs-{seed}", i, size) for i in range(sizes.pairs))
            advance(2 * sizes.pairs)
            split = f"{first}films-{seed}"
            films = [
                video_of(f"{split}-{i}", play(film(nature, split, i, sizes.frames), 2 * size))
                for i in range(sizes.films)
            ]
            advance(sizes.films * sizes.frames)
            return Paper(nat, unc, parts, pairs, VideoSet(f"menagerie films {seed}", tuple(films)))

        bank = pictures(nature, "train", sizes.bank)
        return Papers(bank, tuple(paper(seed) for seed in range(sizes.seeds)), sizes)
