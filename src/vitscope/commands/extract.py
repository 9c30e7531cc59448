"""`vitscope extract`: pooled features of all layers, on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vitscope.commands.options import Limit, ModelOptions, RunOptions
from vitscope.core.errors import VitscopeError
from vitscope.core.say import say


def extract(
    *models: str,
    images: Path,
    out: Path,
    labels: Path | None = None,
    limit: Limit | None = None,
    pooling: list[Literal["cls", "mean", "max", "tokens"]] | None = None,
    dtype: Literal["float16", "float32"] = "float16",
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
    run_options: RunOptions = RunOptions(),  # noqa: B008
) -> None:
    """Write the features of all layers of models for every image to OUT.

    Read them with `vitscope.load_features(OUT)`: `.layer("cls", 11)[:1000]` reads first rows of layer 12 (there they
    count from 0), `.positions` says which line of images.parquet each row is. Interrupted, it goes on where it was when
    started again.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:NAME (untrained), a model card (TOML) or a weights file.
    images
        Folder of images, flat or in class folders, or a text file of paths.
    out
        Folder for everything that is written.
    labels
        Classes of the images: a CSV file of `path,class` lines.
    limit
        At most this many images (a seeded choice, balanced over classes).
    pooling
        What to keep of each layer: cls, mean or max (of the patch tokens), or tokens (all of them: large). May be
        given several times; cls and mean if not given.
    dtype
        float16 halves the files; float32 keeps every digit.
    """
    from vitscope.data import openers
    from vitscope.features.extraction import Extraction, stored_bytes
    from vitscope.pipeline.exports import export_features

    specs = model_options.specs(models)
    dataset = openers.images(images, labels=labels, limit=limit, seed=model_options.seed)
    analysis = Extraction(poolings=tuple(pooling or ("cls", "mean")), dtype=dtype)
    results = run_options.run(specs, [dataset], [analysis], out, model_options, export_features, command="extract")
    sizes = stored_bytes(out)
    for note in results.notes:
        say(f"note: {note}", style="yellow")
    for name, reason in results.skipped.items():
        say(f"skipped: {name} {reason}", style="yellow")
    for part in results.coverage:
        what = f"{' and '.join(analysis.poolings)} features of {part.seen} images"
        say(f"wrote {what} of {part.model} ({dtype}, {sizes.get(part.model, 0) / 1e6:.1f} MB) to {out}")
    say(f"read them with vitscope.load_features('{out}')")
    if results.failures:
        raise VitscopeError(results.failures[0])
