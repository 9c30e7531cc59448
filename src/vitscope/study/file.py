"""The study file: what to examine, on what, and how; validated completely before any work starts."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vitscope.errors import VitscopeError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROLES = ("images", "masks", "labelled", "retrieval", "video", "keypoints")
Analysis = Literal["attention", "features", "knn", "probe", "saliency", "objects", "retrieval", "video", "keypoints"]
NEEDS: dict[str, str] = {  # the dataset role that each analysis is done on
    "attention": "images",
    "features": "images",
    "saliency": "masks",
    "objects": "masks",
    "knn": "labelled",
    "probe": "labelled",
    "retrieval": "retrieval",
    "video": "video",
    "keypoints": "keypoints",
}


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSpec(Strict):
    """One model: a name (or a model card), or a weights file with its architecture."""

    name: str = Field(
        min_length=1, description="A name from `vitscope models`, a timm name, random:ARCH, or a .toml card"
    )
    title: str | None = Field(None, description="What figures and tables call it")
    weights: Path | None = Field(None, description="A weights file, instead of the weights that belong to the name")
    arch: str | None = Field(None, description="timm architecture of the weights file")
    teaching: str | None = Field(None, description="fs clip dino moco mae beit none other")
    size: int | tuple[int, int] | None = Field(None, description="Input size in pixels, if not the model's own")

    @model_validator(mode="after")
    def _file_needs_architecture(self) -> ModelSpec:
        if self.weights is not None and self.arch is None:
            raise ValueError('a weights file needs its architecture: add arch = "vit_small_patch16_224" or the like')
        return self


class DataSpec(Strict):
    """One dataset: where it is and how much of it."""

    path: Path
    images: Path | None = Field(None, description="Folder of the pictures, where annotations lie elsewhere (masks)")
    limit: Annotated[int, Field(ge=1)] | None = Field(
        None, description="At most so many pictures (or pairs, or videos)"
    )


class Data(Strict):
    """Datasets by role; any may be absent."""

    images: DataSpec | None = Field(None, description="Pictures, in class folders if there are labels")
    masks: DataSpec | None = Field(
        None, description="Pictures with object or part masks: COCO, PartImageNet, mask folder"
    )
    labelled: DataSpec | None = Field(
        None, description="train/ and val/ (or test/) in class folders: k-NN, linear probe"
    )
    retrieval: DataSpec | None = Field(None, description="ROxford5k, RParis6k, or one folder per individual")
    video: DataSpec | None = Field(None, description="DAVIS-2017, or folders of frames with a first mask")
    keypoints: DataSpec | None = Field(None, description="SPair-71k, or a JSON of pairs")


class StudyFile(Strict):
    """A study, complete."""

    title: str = Field(min_length=1)
    models: list[ModelSpec] = Field(min_length=1)
    data: Data
    analyses: list[Analysis] | None = Field(None, description="What to do; everything the datasets allow if not given")
    protocols: list[Literal["corrected", "paper"]] = Field(["corrected"], min_length=1)
    seed: int = 0
    skip_limit: Annotated[int, Field(ge=0)] = Field(50, description="Unreadable pictures that are passed over")
    device: str = "auto"
    engine: Literal["local", "ray"] = Field("local", description="Where jobs run: this machine, or a Ray cluster")
    processes: Annotated[int, Field(ge=1)] = Field(1, description="Jobs done side by side; they share the cores")
    out: Path = Field(Path("runs/study"), description="Folder for everything that is written, relative to this file")

    @model_validator(mode="after")
    def _consistent(self) -> StudyFile:
        titles = [spec.title or spec.name for spec in self.models]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise ValueError(f"two models are called '{twice}': give one a title of its own")
        for analysis in self.analyses or ():
            if getattr(self.data, NEEDS[analysis]) is None:
                raise ValueError(f"analysis '{analysis}' needs data.{NEEDS[analysis]}, which is not given")
        if not self.chosen:
            raise ValueError("there is nothing to do: give at least one dataset under [data]")
        return self

    @property
    def chosen(self) -> tuple[str, ...]:
        """The analyses to do, in the order of NEEDS."""
        wanted = set(self.analyses) if self.analyses is not None else set(NEEDS)
        return tuple(a for a, role in NEEDS.items() if a in wanted and getattr(self.data, role) is not None)

    @property
    def roles(self) -> tuple[str, ...]:
        needed = {NEEDS[analysis] for analysis in self.chosen}
        return tuple(role for role in ROLES if role in needed)


def read_study(path: Path) -> StudyFile:
    """Read and validate a study file; relative paths in it are relative to the file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VitscopeError(f"cannot read study file {path}: {error.strerror}; `vitscope init` writes one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VitscopeError(f"{path} is not valid TOML: {error}") from error
    return parse_study(values, path.resolve().parent, str(path))


def parse_study(values: dict[str, Any], base: Path, name: str = "study") -> StudyFile:
    """Validate; the first problem is told in one sentence, an unknown key with the nearest valid one."""
    try:
        study = StudyFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(first["loc"][-1]), _keys(), n=1, cutoff=0.5)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise VitscopeError(f"{name}: there is no setting '{where}'{hint}") from error
        message = str(first["msg"]).removeprefix("Value error, ")
        raise VitscopeError(f"{name}: {where}: {message}") from error
    return _resolved(study, base)


def _keys() -> list[str]:
    return [key for model in (StudyFile, ModelSpec, Data, DataSpec) for key in model.model_fields]


def _resolved(study: StudyFile, base: Path) -> StudyFile:
    """All paths made absolute against the file's folder; data that is not there is told now."""

    def absolute(path: Path) -> Path:
        return base / path.expanduser()

    data = {}
    for role in ROLES:
        spec: DataSpec | None = getattr(study.data, role)
        if spec is not None:
            update = {"path": absolute(spec.path), "images": absolute(spec.images) if spec.images else None}
            if not update["path"].exists():  # type: ignore[union-attr]
                raise VitscopeError(f"data.{role}: there is no {update['path']}")
            data[role] = spec.model_copy(update=update)
    models = []
    for model in study.models:
        kind, colon, card = model.name.rpartition(":")  # also the baseline of a card, such as random:mine.toml
        update = {"weights": absolute(model.weights)} if model.weights else {}
        if model.name.endswith(".toml"):
            update["name"] = f"{kind}{colon}{absolute(Path(card))}"  # type: ignore[assignment]
        models.append(model.model_copy(update=update))
    return study.model_copy(update={"data": Data(**data), "models": models, "out": absolute(study.out)})
