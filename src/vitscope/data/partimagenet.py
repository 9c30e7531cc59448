"""PartImageNet: COCO-style `train.json`, `val.json`, `test.json`, whose categories are parts of 11 kinds of object.

Official layout: `<root>/<split>.json` and `<root>/<split>/<wnid>/<wnid>_<number>.JPEG`; file names in the JSON are
bare. Repackaged copies with `annotations/` and `images/`, and without class folders, are read too. Every category has
a supercategory (Quadruped, Biped, ...). The official files hold regions of two points; they have no mask.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vitscope.core.digest import digest_of_strings
from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import user_path
from vitscope.data.coco import assemble, read_coco_json
from vitscope.data.folders import list_images
from vitscope.data.samples import SampleList

SPLITS = ("train", "val", "test")


def open_partimagenet(root: Path | str, *, per_supercategory: int | None = None) -> SampleList:
    """All splits that are present. label: the image's WordNet id; category: the part.

    per_supercategory: the study's subset, this many images of each supercategory, taken in turn from its classes
    in sorted order (500 for saliency, 100 for clustering).
    """
    root = user_path(root)
    sources = annotation_files(root)
    if not sources:
        raise BadData(f"{root} is not PartImageNet: expected train.json, val.json or test.json in it")
    parts: list[SampleList] = []
    supercategory: dict[str, str] = {}
    for split, source in sources.items():
        content = read_coco_json(source)
        images = _image_folder(root, split)
        files = {file.name: file.relative_to(root) for file in map(images.joinpath, list_images(images))}
        parts.append(assemble(content, source, root, files.get))
        supercategory |= {shorten(c["name"]): shorten(c.get("supercategory") or "") for c in content["categories"]}
    samples = _joined(parts, root)
    if per_supercategory is None:
        return samples
    return samples.select(_study_subset(samples, supercategory, per_supercategory))


def annotation_files(root: Path) -> dict[str, Path]:
    """The JSON of each split that is present."""
    found = {}
    for split in SPLITS:
        for candidate in (root / f"{split}.json", root / "annotations" / f"{split}.json"):
            if candidate.is_file():
                found[split] = candidate
                break
    return found


def _image_folder(root: Path, split: str) -> Path:
    candidates = (root / split, root / "images" / split)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise BadData(f"PartImageNet's images of {split} are missing: expected them in {candidates[0]}")


def _joined(parts: Sequence[SampleList], root: Path) -> SampleList:
    """The splits as one list, with classes from the file names (`n02101006_123.JPEG`)."""
    if len({part.categories for part in parts}) > 1:
        raise BadData(f"the splits of PartImageNet in {root} have different categories: use files of one release")
    samples = [sample for part in parts for sample in part]
    wnid = [sample.path.name.split("_")[0] for sample in samples]
    classes = sorted(set(wnid))
    label = {name: i for i, name in enumerate(classes)}
    return SampleList(
        (replace(sample, label=label[name]) for sample, name in zip(samples, wnid, strict=True)),
        classes=classes,
        categories=parts[0].categories,
        origin=f"PartImageNet of {root}",
        notes=[note for part in parts for note in part.notes],
        annotation_digest=digest_of_strings(part.annotation_digest for part in parts),
    )


def _study_subset(samples: SampleList, supercategory: dict[str, str], n: int) -> list[int]:
    """Positions of n images of each supercategory, in turn from its classes, each class in order of file names."""
    votes: dict[int, Counter[str]] = defaultdict(Counter)  # a class belongs where most of its parts do
    members: dict[int, list[int]] = defaultdict(list)
    for position, sample in enumerate(samples):
        assert sample.label is not None
        members[sample.label].append(position)
        votes[sample.label].update(supercategory[samples.categories[a.category]] for a in sample.annotations)
    classes: dict[str, list[int]] = defaultdict(list)
    for label in sorted(votes):
        classes[votes[label].most_common(1)[0][0]].append(label)
    chosen: list[int] = []
    for labels in classes.values():
        turns = sorted(
            (turn, label, position)
            for label in labels
            for turn, position in enumerate(sorted(members[label], key=lambda i: samples[i].path.name))
        )
        chosen += [position for _, _, position in turns[:n]]
    return sorted(chosen)
