"""The whole feature study: every model over the pictures once, then models by themselves and against each other."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from vitscope.data.samples import SampleList
from vitscope.errors import BadData, VitscopeError
from vitscope.features.analysis import analyse_model
from vitscope.features.clustering import SEEDS
from vitscope.features.comparison import PAIRS, compare_models
from vitscope.features.hsic import LEAST
from vitscope.features.pictures import Labels, gather
from vitscope.features.record import ModelRecord, observe_model, plan_for
from vitscope.models import Backbone, identify, load
from vitscope.progress import Progress, silent
from vitscope.results import Results, make_folder, write_atomically


@dataclass
class FeatureResults(Results):
    """Results of a feature study; `pairs` has the CKA of every pair of sites of all models."""

    pairs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PAIRS))

    def save(self, folder: Path) -> None:
        """Write pairs.parquet beside what all results write."""
        super().save(folder)
        write_atomically(folder / "pairs.parquet", lambda path: self.pairs.write_parquet(path))

    @classmethod
    def load(cls, folder: Path) -> FeatureResults:
        results = super().load(folder)
        assert isinstance(results, cls)
        results.pairs = pl.read_parquet(folder / "pairs.parquet")
        return results


def features(
    models: Sequence[str | Path | Backbone],
    images: str | Path | SampleList | None = None,
    *,
    labels: Labels | None = None,
    masks: str | Path | None = None,
    imagenet50: bool = False,
    dense: bool = False,
    limit: int | None = None,
    protocol: str = "corrected",
    out: str | Path | None = None,
    seeds: int = SEEDS,
    projections: bool = True,
    arch: str | None = None,
    size: int | tuple[int, int] | None = None,
    device: str | None = None,
    seed: int = 0,
    workers: int = 0,
    skip_limit: int = 50,
    download: bool = False,
    progress: Progress = silent,
) -> FeatureResults:
    """Study what models represent: `vitscope.features(["dino-b16", "mae-b16"], images="photos", out="runs/features")`.

    images: a folder of pictures (class subfolders are labels), a list of paths, or a SampleList; with `imagenet50`,
        ImageNet's training folder, of which the study's subset is taken.
    labels: a CSV file of `path,class`, or a mapping of the same, for clusters of pictures.
    masks: COCO or PartImageNet annotations, or a folder with images/ and masks/, for clusters of objects or parts;
        masks that come with their pictures need no `images`. dense: pool them from tiles at twice the size.
    limit: study at most this many pictures (seeded, balanced over classes).
    protocol: "corrected": pictures in a seeded order, CKA on blocks of 32 (all at once up to 64), clusters of features
        of length 1. "paper": as published, blocks of 8 in class order with scaled Grams, clusters of raw features.
    out: a folder; what each model's pass computed is kept in out/records, so that an interrupted study continues, and
        models added later are compared with the others without running these again. Results are written there too.
    seeds: of k-means. projections: also PCA and t-SNE of the last layers.
    Returns `FeatureResults`: `.table` (polars), `.pairs`, `.maps`, `.provenance`, `.skipped`, `.notes`.
    """
    if not models:
        raise VitscopeError("name at least one model: `vitscope models` lists them")
    samples = gather(images, labels=labels, masks=masks, imagenet50=imagenet50)
    samples = samples.limit(limit, seed) if limit else samples
    if len(samples) < LEAST:
        raise BadData(f"{len(samples)} pictures are too few to compare features: give at least {LEAST}")
    if dense and not any(sample.annotations for sample in samples):
        raise BadData("dense extraction pools the regions of masks, and there are no masks: give --masks")
    if protocol == "corrected":
        samples = samples.shuffled(seed)
    plan = plan_for(samples, protocol, dense=dense)
    if not download:
        for model in models:  # a name or a file that is missing is told before the first model is run
            if not isinstance(model, Backbone):
                identify(model, arch=arch, size=size, seed=seed)
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vitscope-")))
        else:
            folder = Path(out).expanduser()
            make_folder(folder)
        records: list[ModelRecord] = []
        for model in models:
            backbone = model if isinstance(model, Backbone) else load(
                model, arch=arch, size=size, device=device, seed=seed, download=download
            )  # fmt: skip
            if any(record.title == backbone.title for record in records):
                raise VitscopeError(f"{backbone.title} is named twice: name each model once")
            records.append(
                observe_model(
                    backbone, samples, folder / "records", plan, workers=workers, skip_limit=skip_limit,
                    progress=progress,
                )
            )  # fmt: skip
            del backbone
            gc.collect()  # twenty models do not fit in memory together
        results = analyse(records, seeds=seeds, projections=projections, progress=progress)
        results.notes[:0] = [note for note in samples.notes if note not in results.notes]
        if out is not None:
            results.save(folder)
    return results


def analyse(
    records: Sequence[ModelRecord], *, seeds: int = SEEDS, projections: bool = True, progress: Progress = silent
) -> FeatureResults:
    """Everything that follows from records: no model is run. Records come from `out/records` of any studies."""
    results = FeatureResults()
    for record in records:
        results.join(analyse_model(record, seeds=seeds, projections=projections, progress=progress))
    results.pairs = compare_models(records, results, progress=progress)
    return results
