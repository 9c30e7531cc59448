"""ImageNet's size without ImageNet: plans over 1.28 million files, and reductions of stores of that many rows.

Each measurement runs in a process of its own, so that its peak of memory is its own. Files are links to one image, and
features and statistics are random numbers in the layout of the real store: what is measured is everything but the
network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.timing import Row

IMAGES, QUERIES, CLASSES = 1_281_167, 50_000, 1000
SMALL = (12_800, 500, 100)
LINKS = 20_000  # to one file: file systems allow a limited number
ASKED = 5_000  # queries of the k-NN whose time is measured; memory is that of all


def rows(quick: bool = False) -> Iterator[Row]:
    images, queries, classes = SMALL if quick else (IMAGES, QUERIES, CLASSES)
    with tempfile.TemporaryDirectory(prefix="vitscope-scale-", dir=os.environ.get("TMPDIR")) as name:
        root = Path(name)
        make_files(root / "imagenet", images, queries, classes)
        first, again = (_measured("plan", root) for _ in range(2))
        yield Row(f"plan over {images:,} images", first["seconds"], 60, "s")
        yield Row("  its memory", first["memory"], 2048, "MB")
        yield Row(
            "  the same plan again",
            again["seconds"],
            15,
            "s",
            note=f"{first['jobs']:,} jobs in {first['shards']} shards",
        )
        found = _measured("knn", root, images, queries, classes)
        seconds = found["seconds"] * queries / found["asked"]
        yield Row(f"k-NN of {images:,} x {queries:,} x 768, one layer: memory", found["memory"], 4096, "MB")
        yield Row(
            "  its time, from a tenth of the queries", seconds, None, "s", note=f"{found['asked']:,} queries timed"
        )
        found = _measured("means", root, images)
        yield Row(f"per-image attention rows of {images:,} images joined: memory", found["memory"], 4096, "MB")
        yield Row("  its time", found["seconds"], None, "s", note=f"{found['rows']:,} rows of the table")


def make_files(root: Path, images: int, queries: int, classes: int) -> None:
    """ImageNet's folders, with links to one small image in the place of photographs."""
    from PIL import Image

    root.mkdir(parents=True)
    made = 0
    for part, count in (("train", images), ("val", queries)):
        for label in range(classes):
            folder = root / part / f"n{label:08}"
            folder.mkdir(parents=True)
            for number in range(label, count, classes):
                if made % LINKS == 0:
                    source = root / f".source-{made}.jpg"
                    Image.new("RGB", (64, 48), (made % 256, 90, 40)).save(source)
                os.link(source, folder / f"{number:08}.jpg")
                made += 1


def _measured(what: str, root: Path, *sizes: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", what, str(root), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- in a process of its own ----------------------------------------------------------------------------------------


def plan(root: Path) -> dict[str, Any]:
    """Everything before the first image is read: listing, digests, shards, what the store has."""
    from vitscope import images, labelled, resolve
    from vitscope.pipeline.plan import make_plan
    from vitscope.pipeline.registry import default_analyses
    from vitscope.pipeline.store import Store

    spec = resolve("random:vit_base_patch16_224")
    datasets = [images(root / "imagenet" / "train"), labelled(root / "imagenet")]
    made = make_plan([spec], datasets, default_analyses({"images", "labelled"}))
    jobs = made.jobs(Store(root / "store"))
    return {"jobs": len(jobs), "shards": max(len(one.what.shards) for one in made.passes)}


def knn(root: Path, images: int, queries: int, classes: int) -> dict[str, Any]:
    """k-NN at one layer whose features lie in the store, in half precision as for any list of that length."""
    import torch

    from vitscope.core.analysis import shards_of
    from vitscope.core.files import TensorFile, write_tensors
    from vitscope.features.stored import PooledFeatures
    from vitscope.tasks.knn import evaluate

    generator = torch.Generator().manual_seed(0)

    def stored(name: str, count: int) -> PooledFeatures:
        folder = root / "features" / name
        folder.mkdir(parents=True)
        files = []
        for number, shard in enumerate(shards_of(count)):
            features = torch.randn(len(shard), 768, generator=generator).half()
            path = folder / f"{number:05}.safetensors"
            write_tensors(path, {"indices": torch.arange(shard.start, shard.stop), "row/cls/0": features})
            files.append(TensorFile(path))
        return PooledFeatures.of(files, depth=1)

    train, test = stored("train", images), stored("test", queries)
    labels = torch.arange(images) % classes
    asked = min(ASKED, queries)
    start = _clock()
    evaluate(train.layers("cls"), labels, [test.layer("cls", 0)[:asked].float()], torch.arange(asked) % classes)
    seconds = _clock() - start
    bank = [train.layer("cls", 0)[: images // 100].float()]
    evaluate(bank, labels[: len(bank[0])], test.layers("cls"), torch.arange(queries) % classes)  # all queries: memory
    return {"seconds": seconds, "asked": asked}


def means(root: Path, images: int) -> dict[str, Any]:
    """Per-image statistics of attention, shard by shard in the store, joined into rows with intervals."""
    import torch

    from vitscope.attention.analysis import Attention
    from vitscope.core.analysis import Watch, shards_of
    from vitscope.data.dataset import ImageSet
    from vitscope.data.samples import ListedFiles, SampleList
    from vitscope.models.spec import resolve
    from vitscope.pipeline.found import StoredFound
    from vitscope.pipeline.plan import make_plan
    from vitscope.pipeline.store import Store

    spec = resolve("random:vit_base_patch32_224")
    files = ListedFiles(root, [f"{n:08}.jpg" for n in range(images)], ["1@1"] * images)
    dataset = ImageSet("many", SampleList(files))
    made = make_plan([spec], [dataset], [Attention()])
    store = Store(root / "attention")
    (task,) = made.tasks
    key, count = task.keys["images"]["attention"]
    watch = next(iter(made.passes[0].watch.values()))
    assert isinstance(watch, Watch)
    generator = torch.Generator().manual_seed(0)
    state = template(watch, spec)
    for number, shard in enumerate(shards_of(images)):
        written = {}
        for name, value in state.items():
            if name.endswith("indices"):
                written[name] = torch.arange(shard.start, shard.stop)
            elif ".row/" in name and not name.startswith("examples"):
                shape = (len(shard), *value.shape[1:])
                written[name] = torch.rand(shape, generator=generator).to(value.dtype)
            else:
                written[name] = value
        store.write_state(key, number, written, skipped={}, about={})
    assert number + 1 == count
    start = _clock()
    outcome = Attention().reduce(dataset, StoredFound(made, task, store))
    return {"seconds": _clock() - start, "rows": sum(len(table) for table in outcome.tables)}


def template(watch: Any, spec: Any) -> dict[str, Any]:
    """The state of one real batch, whose sums and shapes every shard takes over."""
    import torch

    from vitscope.data.batches import Batch

    statistic = watch.make(spec.shape)
    batch = Batch(torch.zeros(2, 3, 224, 224, dtype=torch.uint8), torch.arange(2), ["a", "b"], None, None)
    statistic.begin(batch)
    spec.load("cpu").trace(batch.images, [statistic])
    statistic.end()
    state: dict[str, Any] = statistic.state()
    return state


def _clock() -> float:
    import time

    return time.perf_counter()


def main() -> None:
    from benchmarks.timing import peak_memory_mb

    what, root, *sizes = sys.argv[1:]
    start = _clock()
    found = {"plan": plan, "knn": knn, "means": means}[what](Path(root), *map(int, sizes))  # type: ignore[operator]
    print(json.dumps({"seconds": _clock() - start, "memory": peak_memory_mb(), **found}))


if __name__ == "__main__":
    main()
