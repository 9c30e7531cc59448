"""A model card: a small TOML file that makes somebody's own checkpoint a model of the study.

name = "my-run"
architecture = "vit_small_patch16_224"     # any timm name
weights = "checkpoint.pth"                 # relative to the card
teaching = "dino"                          # fs clip dino moco mae beit none other, or image-text labels ...
taught_on = {dataset = "ImageNet-1k", labels = false}   # optional: what it saw, and whether with labels
ignore_keys = ["head2.*"]                  # optional: patterns of keys that are not part of the network
[options]                                  # keyword arguments of the architecture (optional)
img_size = 96
[preprocessing]                            # optional: of a recognised format its own, else timm's for the architecture
size = [96, 96]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
[provenance]                               # free-form, shown with the results
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.reading import path_problem, read_toml
from vitscope.core.teachings import TEACHINGS

Pixels = Annotated[int, Field(strict=True, ge=1, le=4096)]
# Of pixel values between 0 and 1: a mean of 123.7 is one of values up to 255, and would load and mean nothing.
Mean = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Spread = Annotated[float, Field(strict=True, ge=0.001, le=10, allow_inf_nan=False)]


def shown_text(text: str) -> str:
    if not text.isprintable():
        raise ValueError("line breaks and control characters cannot be shown: use plain text")
    return text


def renamed(values: Any, other: str, word: str) -> Any:
    """Settings in which another name of one of them is replaced, unless both are there.

    >>> renamed({"arch": "vit"}, "arch", "architecture")
    {'architecture': 'vit'}
    """
    if not isinstance(values, dict) or word in values:
        return values
    return {word if key == other else key: value for key, value in values.items()}


# Figures, tables and file names are made of it.
Title = Annotated[str, Field(max_length=200), AfterValidator(shown_text)]


class CardPreprocessing(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    size: tuple[Pixels, Pixels] | None = None
    mean: tuple[Mean, Mean, Mean] | None = None
    std: tuple[Spread, Spread, Spread] | None = None
    interpolation: Literal["bicubic", "bilinear", "nearest"] | None = None


class TaughtOn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    dataset: Title = Field(min_length=1)
    labels: bool = Field(False, strict=True)


class ModelCard(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Title = Field(min_length=1)
    architecture: Title = Field(min_length=1)
    weights: Path
    teaching: str = "other"
    title: Title = ""
    options: dict[str, Any] = {}
    preprocessing: CardPreprocessing = CardPreprocessing()
    taught_on: TaughtOn | None = None
    ignore_keys: tuple[Title, ...] = ()
    provenance: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _both_words(cls, values: Any) -> Any:
        """`arch`, as study files and commands have it, is `architecture` too."""
        return renamed(values, "arch", "architecture")

    @field_validator("weights")
    @classmethod
    def _possible(cls, path: Path) -> Path:
        if problem := path_problem(path):
            raise ValueError(f"the path {problem}")
        return path


def read_card(path: Path) -> ModelCard:
    """Read and validate a card; its weights path is resolved against the card's folder."""
    values = read_toml(path)
    try:
        card = ModelCard.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = shorten(".".join(str(part) for part in first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise VitscopeError(f"model card {path}: {where}: {message}") from error
    if card.teaching not in TEACHINGS:
        raise VitscopeError(
            f"model card {path}: teaching '{shorten(card.teaching)}' is not one of {', '.join(TEACHINGS)}"
        )
    return card.model_copy(update={"weights": path.parent / card.weights})
