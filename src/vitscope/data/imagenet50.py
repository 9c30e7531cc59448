"""ImageNet-50: the study's subset for clustering, the first 100 sorted training files of each of 50 classes."""

from __future__ import annotations

from importlib import resources
from itertools import islice
from pathlib import Path

from vitscope.core.errors import BadData
from vitscope.core.reading import user_path
from vitscope.data.folders import list_images
from vitscope.data.samples import Sample, SampleList, safe_id

PER_CLASS = 100


def imagenet50_classes() -> dict[str, str]:
    """WordNet id to name, of the 50 classes, in the order of the ids.

    >>> len(imagenet50_classes()), imagenet50_classes()["n07753592"]
    (50, 'Banana')
    """
    text = resources.files("vitscope.data").joinpath("imagenet_50.txt").read_text(encoding="utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines() if line)


def open_imagenet50(root: Path | str, per_class: int = PER_CLASS) -> SampleList:
    """root: the folder with one subfolder per WordNet id (`train`), or the folder that holds `train`."""
    root = user_path(root)
    classes = imagenet50_classes()
    if not any((root / wnid).is_dir() for wnid in classes) and (root / "train").is_dir():
        root = root / "train"
    missing = [wnid for wnid in classes if not (root / wnid).is_dir()]
    if missing:
        raise BadData(
            f"ImageNet-50 needs a folder per class such as {root / missing[0]}, and {len(missing)} of the 50 are "
            f"missing: give ImageNet's training folder"
        )
    samples, notes = [], []
    for label, wnid in enumerate(classes):
        files = list(islice(list_images(root / wnid), per_class))
        if not files:
            raise BadData(f"the class folder {root / wnid} has no images: ImageNet-50 needs {per_class} of them")
        if len(files) < per_class:
            notes.append(f"class {wnid} has {len(files)} images instead of {per_class}")
        samples += [Sample(f"{wnid}/{safe_id(file)}", root / wnid / file, label) for file in files]
    return SampleList(samples, classes=list(classes.values()), origin=f"ImageNet-50 of {root}", notes=notes)
