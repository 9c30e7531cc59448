"""Images whose shape says one thing and whose texture another, named as Geirhos et al. (2019) name them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import user_path
from vitscope.data.dataset import LabelledSet
from vitscope.data.folders import list_images, open_images
from vitscope.data.layouts import found_in
from vitscope.data.samples import Sample, SampleList, safe_id

STIMULI, BANK = "cue-conflict", "train"  # subfolders, where one folder holds both
EXPECTED = (
    "expected class folders of images named shape1-texture2.png, such as cat/cat1-snake2.png, and labelled images of "
    "the same classes, in class folders"
)


@dataclass(frozen=True)
class ConflictSample(Sample):
    """label: the class whose shape it has; texture: the class whose texture it has."""

    texture: int = -1


@dataclass(frozen=True)
class ConflictSet(LabelledSet):
    """`train`: labelled images, whose classes are the answers; `test`: images whose cues are in conflict."""

    kind: ClassVar[str] = "conflict"

    @property
    def textures(self) -> tuple[int, ...]:
        """The class of each test image's texture; its label is that of its shape."""
        return tuple(sample.texture for sample in self.test if isinstance(sample, ConflictSample))


def open_conflict(path: Path | str, bank: Path | str | None = None) -> ConflictSet:
    """A folder with cue-conflict/ and train/; or the images themselves, and a bank of labelled ones elsewhere.

    Names count, since they tell both cues: files of other names, or of classes that the bank has not, are left out and
    told, as are those whose shape and texture are of one class (the published set has some).
    """
    root = user_path(path)
    if not root.is_dir():
        raise BadData(f"{root} is not a folder: {EXPECTED}")
    whole = (root / STIMULI).is_dir()
    if bank is None and not whole:
        raise BadData(
            f"{root} has no {STIMULI}/ and {BANK}/: {EXPECTED}: name them as the bank; found {found_in(root)}"
        )
    known = open_images(root / BANK if bank is None else bank)
    if not known.is_labelled:
        raise BadData(f"the labelled images in {known.origin} have no classes: {EXPECTED}")
    folder = root / STIMULI if whole else root
    numbers = {name: number for number, name in enumerate(known.classes)}
    samples, odd, agreeing = [], [], 0
    for name in list_images(folder):
        cues = cues_of(safe_id(name.stem), numbers)
        if cues is None:
            odd.append(safe_id(name))
        elif cues[0] == cues[1]:
            agreeing += 1
        else:
            shape, texture = (numbers[cue] for cue in cues)
            samples.append(ConflictSample(safe_id(name), folder / name, shape, texture=texture))
    if not samples:
        hint = f"; {len(odd)} images have other names (first: {shorten(odd[0], 60)})" if odd else ""
        raise BadData(f"no image in {folder} has two cues in conflict among {_some(known.classes)}: {EXPECTED}{hint}")
    notes = []
    if odd:
        notes.append(f"{len(odd)} images of {root.name} name no two classes of the bank (first: {shorten(odd[0], 60)})")
    if agreeing:
        notes.append(f"{agreeing} images of {root.name} have shape and texture of one class: they say nothing here")
    test = SampleList(samples, classes=known.classes, origin=str(folder), notes=notes)
    return ConflictSet(root.resolve().name, known, test)


def cues_of(stem: str, classes: Container[str]) -> tuple[str, str] | None:
    """The classes of shape and texture that a name tells, if it tells two.

    >>> cues_of("cat12-t-rex3", {"cat", "t-rex"})
    ('cat', 't-rex')
    >>> cues_of("cat-dog", {"cat"}) is None
    True
    """
    for place, letter in enumerate(stem):
        if letter == "-":
            shape, texture = (_numbered(part, classes) for part in (stem[:place], stem[place + 1 :]))
            if shape is not None and texture is not None:
                return shape, texture
    return None


def _numbered(text: str, classes: Container[str]) -> str | None:
    """The class that a text is, without a number at its end."""
    end = len(text)
    while end and text[:end] not in classes and text[end - 1] in "0123456789":
        end -= 1
    return text[:end] if text[:end] in classes else None


def _some(classes: tuple[str, ...]) -> str:
    more = f" and {len(classes) - 3} more" if len(classes) > 3 else ""
    return ", ".join(shorten(name, 40) for name in classes[:3]) + more
