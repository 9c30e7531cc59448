"""The official datasets that have a name here, as data: where they lie, what is in them, how to get them.

A dataset is looked for below one folder (`core/place.py`). What is known of a complete copy are counts that its authors
publish and digests of its archives; `check_copy` holds a copy to them.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from vitscope.core.errors import BadData, shorten
from vitscope.core.place import data_root
from vitscope.data.dataset import Dataset
from vitscope.data.decode import BadImage, decode_image
from vitscope.data.layouts import is_there
from vitscope.data.openers import OPENERS
from vitscope.data.samples import SampleList

LOOKED_AT = 64  # images of a copy that are decoded


@dataclass(frozen=True)
class OfficialDataset:
    """A dataset that people know by name.

    images: that go through a network, about; folders: where it may lie below the root, the first being where to put
    it; expected: what must be in it (a slash at the end: a folder); facts: what a complete copy has, by the names of
    `COUNTS`; settings: of its opener; opened: what of it the opener is given, if not the folder; archives: file name ->
    algorithm and digest, as published.
    """

    name: str
    title: str
    kind: str
    used_for: str
    images: int
    folders: tuple[str, ...]
    expected: tuple[str, ...]
    size: str
    how: str
    facts: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    opened: str = ""
    archives: Mapping[str, str] = field(default_factory=dict)

    def places(self, root: Path | None = None) -> list[Path]:
        """Where it is looked for."""
        return [(root or data_root()) / folder for folder in self.folders]

    def find(self, root: Path | None = None) -> Path | None:
        """Where it is: the first place that has what is expected, or None."""
        return next((place for place in self.places(root) if not self.missing(place)), None)

    def missing(self, place: Path) -> list[str]:
        """What is expected at a place and not there."""
        return [name for name in self.expected if not is_there(place / name, name.endswith("/"))]

    def open(self, place: Path, **options: Any) -> Dataset:
        """The dataset at a place. Its title says whether it is complete, where published scores depend on that."""
        named = {"title": self.title} if self.kind in ("images", "masks") else {}
        return OPENERS[self.kind](place / self.opened, **{**self.settings, **named, **options})

    def remedy(self, root: Path | None = None) -> str:
        return f"put it into {self.places(root)[0]} ({self.size}): {self.how}"


_IMAGENET_HOW = (
    "ImageNet's page, image-net.org, after registering: ILSVRC2012 task 1 and 2, training and validation images; "
    "unpack the training archives of the classes into train/, and sort the validation images into class folders of "
    "val/ by the validation ground truth of the development kit"
)
_IMAGENET_ARCHIVES = {  # as torchvision has them
    "ILSVRC2012_img_train.tar": "md5:1d675b47d978889d74fa0da5fadfb00e",
    "ILSVRC2012_img_val.tar": "md5:29b22e2961454d5413ddabcf34fc5622",
}
_REVISITED_HOW = (
    "the page 'Revisiting Oxford and Paris' of Radenović et al. (CMP, Czech Technical University): the ground truth "
    "{truth}; the images from the {group} buildings dataset of the Visual Geometry Group, Oxford, all in jpg/"
)

OFFICIAL: dict[str, OfficialDataset] = {
    dataset.name: dataset
    for dataset in (
        OfficialDataset(
            "imagenet",
            "ImageNet",
            "labelled",
            "k-NN classification, linear probe",
            1_331_167,
            ("imagenet", "ImageNet", "ILSVRC2012"),
            ("train/", "val/"),
            "about 150 GB",
            _IMAGENET_HOW,
            {"classes": 1000, "training images": 1_281_167, "test images": 50_000},
            archives=_IMAGENET_ARCHIVES,
        ),
        OfficialDataset(
            "imagenet-50",
            "ImageNet-50",
            "images",
            "attention, features and clusters of images",
            5000,
            ("imagenet", "ImageNet", "ILSVRC2012", "imagenet-50"),
            ("train/",),
            "about 600 MB of ImageNet",
            "nothing beyond ImageNet (`vitscope datasets imagenet`): the first 100 training files of 50 classes are "
            "taken where they lie, in train/",
            {"classes": 50, "images": 5000},
            settings={"imagenet50": True},
        ),
        OfficialDataset(
            "coco-val2017",
            "COCO val2017",
            "masks",
            "attention saliency, clusters of objects",
            4952,
            ("coco", "COCO"),
            ("val2017/", "annotations/instances_val2017.json"),
            "about 1.6 GB",
            "COCO's page, cocodataset.org: 2017 Val images and 2017 Train/Val annotations, unpacked side by side",
            {"images with regions": 4952, "categories": 80, "regions": 36_781},
            opened="annotations/instances_val2017.json",
            archives={
                "val2017.zip": "sha256:4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05",
                "annotations_trainval2017.zip": (
                    "sha256:113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268"
                ),
            },
        ),
        OfficialDataset(
            "partimagenet",
            "PartImageNet",
            "masks",
            "attention saliency, clusters of parts",
            24_000,
            ("PartImageNet", "partimagenet"),
            ("train.json", "val.json", "test.json", "train/", "val/", "test/"),
            "about 3 GB",
            "the repository PartImageNet of TACJu on GitHub (He et al., ECCV 2022): train.json, val.json, test.json "
            "and the image folders train/, val/, test/",
            {"classes": 158, "categories": 40},
        ),
        OfficialDataset(
            "roxford5k",
            "ROxford5k",
            "retrieval",
            "image retrieval",
            5063,
            ("roxford5k", "ROxford5k"),
            ("gnd_roxford5k.pkl", "jpg/"),
            "about 2 GB",
            _REVISITED_HOW.format(truth="gnd_roxford5k.pkl", group="Oxford"),
            {"queries": 70, "database images": 4993},
        ),
        OfficialDataset(
            "rparis6k",
            "RParis6k",
            "retrieval",
            "image retrieval",
            6392,
            ("rparis6k", "RParis6k"),
            ("gnd_rparis6k.pkl", "jpg/"),
            "about 2.5 GB",
            _REVISITED_HOW.format(truth="gnd_rparis6k.pkl", group="Paris"),
            {"queries": 70, "database images": 6322},
        ),
        OfficialDataset(
            "davis-2017",
            "DAVIS-2017 val",
            "video",
            "video object segmentation",
            1999,
            ("DAVIS", "davis", "DAVIS-2017"),
            ("JPEGImages/480p/", "Annotations/480p/", "ImageSets/2017/val.txt"),
            "about 800 MB",
            "the DAVIS challenge's page, davischallenge.org: DAVIS 2017, semi-supervised, TrainVal, images and "
            "annotations, 480p",
            {"videos": 30, "frames": 1999, "objects": 61},
        ),
        OfficialDataset(
            "spair-71k",
            "SPair-71k test",
            "keypoints",
            "keypoint correspondence",
            1800,
            ("SPair-71k", "spair-71k"),
            ("PairAnnotation/test/", "JPEGImages/", "Layout/large/test.txt"),
            "about 240 MB",
            "the page of SPair-71k by Min et al. (Computer Vision Lab, POSTECH): SPair-71k.tar.gz",
            {"pairs": 12_234, "categories": 18},
        ),
    )
}

# How each fact is counted, for whatever kind of dataset has it.
COUNTS: dict[str, Callable[[Any], int]] = {
    "classes": lambda d: len((d.train if d.kind == "labelled" else d.samples).classes),
    "images": lambda d: len(d.samples),
    "images with regions": lambda d: len(d.samples),
    "regions": lambda d: sum(len(sample.annotations) for sample in d.samples),
    "categories": lambda d: len(d.categories if d.kind == "keypoints" else d.samples.categories),
    "training images": lambda d: len(d.train),
    "test images": lambda d: len(d.test),
    "queries": lambda d: len(d.queries),
    "database images": lambda d: len(d.database),
    "videos": lambda d: len(d.sequences),
    "frames": lambda d: d.count,
    "objects": lambda d: sum(sequence.objects for sequence in d.sequences),
    "pairs": lambda d: len(d.pairs),
}


def official(name: str) -> OfficialDataset:
    """The dataset of that name, however it is written."""
    if found := OFFICIAL.get(name.lower()):
        return found
    near = difflib.get_close_matches(name.lower()[:60], OFFICIAL, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"there is {', '.join(OFFICIAL)}"
    raise BadData(f"no dataset is called '{shorten(name, 60)}': {hint}")


@dataclass(frozen=True)
class Fact:
    """One thing that was looked at. right: None where nothing is known to compare with, or it is not there."""

    what: str
    found: str
    right: bool | None


def check_copy(known: OfficialDataset, path: Path, root: Path | None = None) -> Iterator[Fact]:
    """Hold a copy to what is known of it: counts, some images decoded, and archives that still lie beside it.

    Raises BadData if it is not in the layout.
    """
    dataset = known.open(path)
    for what, right in known.facts.items():
        found = COUNTS[what](dataset)
        told = f"{found:,}" if found == right else f"{found:,}, and a complete copy has {right:,}"
        yield Fact(what, told, found == right)
    files = list(_some_files(dataset))
    broken = [error for error in map(_broken, files) if error]
    yield Fact("images decoded", broken[0] if broken else f"{len(files)}, spread over all", not broken)
    for name, digest in known.archives.items():
        beside = [place / name for place in (path, path.parent, root or data_root()) if (place / name).is_file()]
        if beside:
            algorithm, _, right_digest = digest.partition(":")
            same = _digest(beside[0], algorithm) == right_digest
            yield Fact(name, f"{algorithm} as published" if same else f"its {algorithm} is not {right_digest}", same)
        else:
            yield Fact(name, "not kept beside it, and not needed", None)


def _lists(dataset: Any) -> list[SampleList]:
    names = ("samples", "train", "test", "database", "query_images", "images")
    return [value for name in names if isinstance(value := getattr(dataset, name, None), SampleList)]


def _some_files(dataset: Any) -> Iterator[Path]:
    """Files evenly spread over all lists (or videos) of a dataset."""
    if dataset.kind == "video":
        for sequence in dataset.sequences:
            yield sequence.frames[len(sequence) // 2]
        return
    lists = _lists(dataset)
    most = max(LOOKED_AT // max(len(lists), 1), 1)
    for samples in lists:
        step = max(len(samples) // most, 1)
        yield from (samples[i].path for i in islice(range(0, len(samples), step), most))


def _broken(path: Path) -> str:
    try:
        decode_image(path)
    except BadImage as error:
        return str(error)
    return ""


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        found = hashlib.new(algorithm)
        while block := file.read(1 << 22):
            found.update(block)
    return found.hexdigest()
