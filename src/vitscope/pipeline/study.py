"""The study file: what to examine, on what, and how; validated completely before any work starts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from vitscope.core.analysis import Analysis
from vitscope.core.errors import BadData, VitscopeError, shorten
from vitscope.core.reading import read_toml, user_path
from vitscope.core.say import Figures
from vitscope.core.teachings import TEACHINGS
from vitscope.data.dataset import EXAMPLES, Dataset
from vitscope.data.official import official
from vitscope.data.openers import OPENERS
from vitscope.models.card import Pixels, renamed, shown_text
from vitscope.models.several import distinct, untrained_twins
from vitscope.models.spec import Spec, resolve
from vitscope.pipeline.registry import ANALYSES, default_analyses, in_protocols

KINDS = tuple(OPENERS)
MOST_DIGITS = 15  # of a step: floating-point numbers, which charts are made of, have them all

Title = Annotated[str, Field(min_length=1, max_length=120), AfterValidator(shown_text)]


Self = TypeVar("Self", bound="DataEntry")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(Strict):
    """One model: a name (or a model card), or weights: a file, or a folder that `save_pretrained` wrote."""

    name: str = Field(
        min_length=1, description="A name from `vitscope models`, a timm name, random:NAME, or a .toml card"
    )
    title: Title | None = Field(None, description="What figures and tables call it")
    weights: Path | None = Field(
        None, description="A weights file or a save_pretrained folder, instead of what belongs to the name"
    )
    arch: str | None = Field(None, description="timm architecture of the weights file, if its tensors leave a choice")
    ignore_keys: tuple[Title, ...] = Field((), description="Patterns of keys that are not part of the network")
    teaching: str | None = Field(None, description=" ".join(TEACHINGS))
    size: Pixels | tuple[Pixels, Pixels] | None = Field(
        None, description="Input size in pixels, if not the model's own"
    )
    series: Annotated[str, Field(min_length=1, max_length=4000)] | None = Field(
        None,
        description="Checkpoints of one run, drawn over steps: a pattern such as runs/mine/epoch-*.pth (weights or "
        "cards), or a name that several models with a step share",
    )
    step: Annotated[int, Field(strict=True, ge=0)] | None = Field(None, description="Of a model of a series")

    @model_validator(mode="before")
    @classmethod
    def _both_words(cls, values: Any) -> Any:
        """`architecture`, as model cards have it, is `arch` too."""
        return renamed(values, "architecture", "arch")

    @model_validator(mode="after")
    def _series_and_step(self) -> ModelEntry:
        if self.series is not None and "*" in self.series and (self.weights is not None or self.step is not None):
            raise ValueError("a series of files has its weights and steps from them: leave out weights and step")
        if self.series is not None and "*" not in self.series and self.step is None:
            raise ValueError("a model of a series needs its step: add step = 1000, or give a pattern with a *")
        return self

    def checkpoints(self, base: Path) -> list[ModelEntry]:
        """One entry per file of a series, in order of steps: the last number in each name. Others are themselves."""
        if self.series is None or "*" not in self.series:
            return [self]
        pattern = user_path(self.series)
        if "*" in str(pattern.parent):  # a pattern for folders could have the whole disk searched
            raise VitscopeError(f"series: {shorten(self.series)} has a * in a folder's name: use it in files' names")
        try:
            found = sorted(path for path in (base / pattern.parent).iterdir() if fnmatchcase(path.name, pattern.name))
        except OSError as error:
            raise VitscopeError(f"series: {shorten(pattern.parent)} cannot be read: {error.strerror}") from None
        files = [path for path in found if path.is_file()]
        if len(files) < 2:
            raise VitscopeError(f"series: {len(files)} files match {shorten(self.series)}; two checkpoints are needed")
        steps: dict[int, Path] = {}
        for file in files:
            numbers = re.findall(r"[0-9]+", file.stem)
            if not numbers or len(numbers[-1]) > MOST_DIGITS or int(numbers[-1]) in steps:
                raise VitscopeError(
                    f"series: {shorten(file.name)} has no step of its own in its name, such as epoch-10.pth"
                )
            steps[int(numbers[-1])] = file
        name = self.title or self.name
        entries = []
        for step, file in sorted(steps.items()):
            card = file.suffix.lower() == ".toml"
            update: dict[str, Any] = {"name": str(file)} if card else {"weights": file}
            update |= {"title": f"{name} @ {step}", "series": name, "step": step}
            entries.append(self.model_copy(update=update))
        return entries

    def resolve(self, seed: int, root: Path | None = None, *, download: bool = False) -> Spec:
        source = self.weights if self.weights is not None else self.name
        title = self.title or (self.name if self.weights is not None else None)
        found: dict[str, Any] = {"seed": seed, "root": root, "download": download, "ignore_keys": self.ignore_keys}
        return resolve(source, arch=self.arch, size=self.size, title=title, teaching=self.teaching, **found)


class DataEntry(Strict):
    """One dataset: its name or where it is, and how much of it."""

    name: str | None = Field(None, description="A name from `vitscope datasets`, which knows where it lies")
    path: Path | None = Field(None, description="Where it is, if it has no name or lies elsewhere")
    title: Title | None = Field(None, description="What tables and pages call it")
    limit: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="At most so many images (queries, videos, or pairs of each category)"
    )
    analyses: list[str] | None = Field(
        None, min_length=1, description="Only these analyses look at it; all of its kind if absent"
    )

    @model_validator(mode="after")
    def _is_somewhere(self: Self) -> Self:
        if self.name is None and self.path is None:
            raise ValueError("say where it is: path, or its name (`vitscope datasets` lists them)")
        return self

    @property
    def label(self) -> str:
        """What a message calls it."""
        return self.title or self.name or str(self.path)

    def open(self, kind: str, seed: int, root: Path | None) -> Dataset:
        """What is there, in the layout that it should be in; BadData says where it was looked for and how to get it."""
        own = ("name", "path", "analyses")
        options = {key: value for key, value in self if key not in own and value not in (None, False)}
        if self.name is None:
            assert self.path is not None
            if not self.path.exists():
                raise BadData(f"data.{kind}: there is no {self.path}")
            found = OPENERS[kind](self.path, seed=seed, **options)
        else:
            known = official(self.name)
            place = self.path or known.find(root)
            if place is None or not place.exists():
                looked = ", ".join(map(str, [self.path] if self.path else known.places(root)))
                raise BadData(f"{known.name} is not on this machine; looked for in {looked}: {known.remedy(root)}")
            found = known.open(place, seed=seed, **options)
        return found.for_analyses(self.analyses) if self.analyses else found


class ImageEntry(DataEntry):
    labels: Path | None = Field(None, description="Classes of the images: a CSV of path,class lines")
    imagenet50: bool = Field(False, description="PATH is ImageNet's training folder: take the study's 50 classes")
    examples: list[str] | None = Field(
        None, min_length=1, max_length=EXAMPLES, description="Images to look at one by one; some, if absent"
    )


class MaskEntry(DataEntry):
    images: Path | None = Field(None, description="Folder of the images, where annotations lie elsewhere")
    per_supercategory: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="PartImageNet: so many images of each super-category, as in the paper (500, or 100)"
    )


class SegmentationEntry(DataEntry):
    images: Path | None = Field(None, description="Folder of the images, where annotations lie elsewhere")


class ConflictEntry(DataEntry):
    bank: Path | None = Field(None, description="Labelled images in class folders, if path has no train/ of its own")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class Data(Strict):
    """Datasets by kind, any number of each: [data.images], or [[data.retrieval]] several times."""

    images: Annotated[list[ImageEntry], BeforeValidator(_as_list)] = Field([], description="Attention, features")
    masks: Annotated[list[MaskEntry], BeforeValidator(_as_list)] = Field(
        [], description="Images with object or part masks: COCO, PartImageNet, mask folder"
    )
    labelled: Annotated[list[DataEntry], BeforeValidator(_as_list)] = Field(
        [], description="train/ and val/ (or test/) in class folders: k-NN, linear probe"
    )
    retrieval: Annotated[list[DataEntry], BeforeValidator(_as_list)] = Field(
        [], description="ROxford5k, RParis6k, or one folder per individual"
    )
    video: Annotated[list[DataEntry], BeforeValidator(_as_list)] = Field(
        [], description="DAVIS-2017, or folders of frames with a first mask"
    )
    keypoints: Annotated[list[DataEntry], BeforeValidator(_as_list)] = Field(
        [], description="SPair-71k, or a JSON of pairs"
    )
    segmentation: Annotated[list[SegmentationEntry], BeforeValidator(_as_list)] = Field(
        [], description="A class for every pixel: VOC, ADE20K, or masks by category"
    )
    conflict: Annotated[list[ConflictEntry], BeforeValidator(_as_list)] = Field(
        [], description="Shapes of one class with the texture of another: cue-conflict/ and train/"
    )

    def entries(self) -> Iterator[tuple[str, DataEntry]]:
        for kind in KINDS:
            for entry in getattr(self, kind):
                yield kind, entry


class Study(Strict):
    """A study, complete."""

    title: Title
    root: Path | None = Field(
        None, description="Folder of named datasets and of weights/, relative to this file; $VITSCOPE_DATA if absent"
    )
    models: list[ModelEntry] = Field(min_length=1)
    data: Data
    analyses: list[str] | dict[str, dict[str, Any]] | None = Field(
        None,
        description="What to do, by name, or with settings: [analyses.knn] ks = [20]; all the data allow if absent",
    )
    protocols: list[Literal["corrected", "paper"]] = Field(["corrected"], min_length=1)
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0
    baselines: bool = Field(
        True, description="Add the untrained network of every shape: no score means much without it"
    )
    skip_limit: Annotated[int, Field(strict=True, ge=0)] = Field(
        50, description="Unreadable images that are passed over"
    )
    device: str = "auto"
    engine: Literal["local", "ray"] = Field("local", description="Where jobs run: this machine, or a Ray cluster")
    processes: Annotated[int, Field(strict=True, ge=1, le=4096)] = Field(
        1, description="Jobs done side by side; they share the cores"
    )
    workers: Annotated[int, Field(strict=True, ge=0, le=256)] = Field(
        0, description="Processes that decode images, for each process that runs a network; 0: a few threads"
    )
    figures: Figures = Field(
        "page", description="What is drawn: none, the images of the page, or all: figures for papers too"
    )
    width: Literal["column", "page"] | None = Field(
        None, description="Width of figures: a paper's column (3.25 in) or page (6.75 in); as they like if absent"
    )
    out: Path = Field(Path("runs/study"), description="Folder for everything that is written, relative to this file")

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        titles = [entry.title or entry.name for entry in self.models]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise ValueError(f"two models are called '{twice}': give one a title of its own")
        if len(set(self.protocols)) < len(self.protocols):
            raise ValueError("protocols: name each of them once")
        kinds = {kind for kind, _ in self.data.entries()}
        for name in self.analyses or ():
            if name not in ANALYSES:
                near = difflib.get_close_matches(shorten(name, 60), ANALYSES, n=1, cutoff=0.5)
                hint = f"did you mean '{near[0]}'?" if near else f"there is {', '.join(ANALYSES)}"
                raise ValueError(f"there is no analysis '{shorten(name, 60)}': {hint}")
            if ANALYSES[name].kind not in kinds:
                raise ValueError(f"analysis '{name}' needs data.{ANALYSES[name].kind}, which is not given")
        for kind, entry in self.data.entries():
            try:
                known = official(entry.name) if entry.name is not None else None
            except BadData as error:
                raise ValueError(f"data.{kind}: {error}") from None
            if known is not None and known.kind != kind:
                raise ValueError(f"data.{kind}: {known.name} belongs under data.{known.kind}")
            for name in entry.analyses or ():
                if name not in ANALYSES or ANALYSES[name].kind != kind:
                    there = ", ".join(n for n, a in ANALYSES.items() if a.kind == kind)
                    raise ValueError(f"data.{kind}: no analysis '{shorten(name, 60)}' takes it: there is {there}")
        if not self.chosen():
            raise ValueError("there is nothing to do: give at least one dataset under [data]")
        return self

    def chosen(self) -> list[Analysis]:
        """The analyses to do, with their settings, under each protocol."""
        kinds = {kind for kind, _ in self.data.entries()}
        if isinstance(self.analyses, dict):
            found: list[Analysis] = []
            for name, settings in self.analyses.items():
                try:
                    found += in_protocols(ANALYSES[name], self.protocols, **settings)
                except ValidationError as error:
                    raise ValueError(f"analyses.{name}: {_complaint(error)}") from None
            return found
        return default_analyses(kinds, self.protocols, self.analyses)

    def specs(self, *, download: bool = False) -> list[Spec]:
        """The models; missing weights are told here."""
        return self.with_baselines([entry.resolve(self.seed, self.root, download=download) for entry in self.models])

    def with_baselines(self, specs: list[Spec]) -> list[Spec]:
        """Each once, and the untrained network of each shape where that is wanted."""
        return list(distinct([*specs, *(untrained_twins(specs, self.seed) if self.baselines else ())]))

    def datasets(self) -> list[Dataset]:
        """Open every dataset; what is missing, or not in the layout that it should be in, is told here."""
        return [entry.open(kind, self.seed, self.root) for kind, entry in self.data.entries()]

    def settings(self) -> dict[str, Any]:
        """What was asked for, as it is shown with the results: names instead of places on this machine."""
        values = self.model_dump(
            mode="json",
            exclude={"out", "root", "engine", "processes", "workers", "figures", "width"},
            exclude_none=True,
        )
        for entries in values["data"].values():
            for entry in entries:
                for key in ("path", "images", "labels", "bank"):
                    if key in entry:
                        entry[key] = Path(entry[key]).name
        for entry in values["models"]:
            if "weights" in entry:
                entry["weights"] = Path(entry["weights"]).name
            if entry["name"].endswith(".toml"):
                kind, colon, card = entry["name"].rpartition(":")
                entry["name"] = f"{kind}{colon}{Path(card).name}"
        return values


def read_study(path: Path) -> Study:
    """Read and validate a study file; relative paths in it are relative to the file."""
    path = user_path(path)
    if not path.exists():
        raise VitscopeError(f"there is no study file {path}; `vitscope init` writes one")
    return parse_study(read_toml(path), path.resolve().parent, str(path))


def parse_study(values: dict[str, Any], base: Path, name: str = "study") -> Study:
    """Validate; the first problem is told in one sentence, an unknown key with the nearest valid one."""
    try:
        study = Study.model_validate(values)
    except ValidationError as error:
        raise VitscopeError(f"{name}: {_complaint(error, values)}") from error
    return _resolved(study, base)


def _complaint(error: ValidationError, values: dict[str, Any] | None = None) -> str:
    first = error.errors()[0]
    where = ".".join(_place(first["loc"], values or {})) or "the file"
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(shorten(first["loc"][-1], 60), _keys(), n=1, cutoff=0.5)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"there is no setting '{where}'{hint}"
    where = shorten(where)
    message = str(first["msg"]).removeprefix("Value error, ")
    return message if where == "the file" else f"{where}: {message}"


def _place(loc: tuple[int | str, ...], values: dict[str, Any]) -> list[str]:
    """Where a setting stands in the file: a dataset that is the only one of its kind has no number there."""
    alone = len(loc) > 2 and loc[0] == "data" and isinstance(values["data"].get(loc[1]), dict)
    return [str(part) for number, part in enumerate(loc) if not (alone and number == 2)]


def _keys() -> list[str]:
    entries: tuple[type[BaseModel], ...] = (Study, ModelEntry, Data, ImageEntry, MaskEntry, ConflictEntry)
    return [key for model in entries for key in model.model_fields]


def _resolved(study: Study, base: Path) -> Study:
    """All paths made absolute against the file's folder."""

    def absolute(path: Path) -> Path:
        return base / user_path(path)

    data: dict[str, list[DataEntry]] = {kind: [] for kind in KINDS}
    for kind, entry in study.data.entries():
        places = {key: absolute(value) for key, value in entry if isinstance(value, Path)}
        data[kind].append(entry.model_copy(update=places))
    models = []
    for model in (one for entry in study.models for one in entry.checkpoints(base)):
        kind, colon, card = model.name.rpartition(":")  # also the baseline of a card, such as random:mine.toml
        update: dict[str, Any] = {"weights": absolute(model.weights)} if model.weights else {}
        if model.name.endswith(".toml"):
            update["name"] = f"{kind}{colon}{absolute(Path(card))}"
        models.append(model.model_copy(update=update))
    resolved: dict[str, Any] = {"data": study.data.model_copy(update=data), "models": models}
    resolved |= {"out": absolute(study.out), "root": absolute(study.root) if study.root else None}
    return study.model_copy(update=resolved)
