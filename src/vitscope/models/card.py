"""A model card: a small TOML file that makes somebody's own checkpoint a model of the study.

name = "my-run"
architecture = "vit_small_patch16_224"     # any timm name
weights = "checkpoint.pth"                 # relative to the card
teaching = "dino"                          # fs clip dino moco mae beit none other
[options]                                  # keyword arguments of the architecture (optional)
img_size = 96
[preprocessing]                            # optional: timm's for the architecture otherwise
size = [96, 96]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
[provenance]                               # free-form, shown with the results
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vitscope.errors import VitscopeError
from vitscope.teachings import TEACHINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_CARD = 1 << 20  # bytes: a card is a page of text


class CardPreprocessing(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    size: tuple[int, int] | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    interpolation: str | None = None


class ModelCard(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(min_length=1)
    architecture: str = Field(min_length=1)
    weights: Path
    teaching: str = "other"
    title: str = ""
    options: dict[str, Any] = {}
    preprocessing: CardPreprocessing = CardPreprocessing()
    provenance: dict[str, Any] = {}


def read_card(path: Path) -> ModelCard:
    """Read and validate a card; its weights path is resolved against the card's folder."""
    try:
        if path.stat().st_size > LARGEST_CARD:
            raise VitscopeError(f"{path} is too large to be a model card (a small TOML file)")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        card = ModelCard.model_validate(values)
    except OSError as error:
        raise VitscopeError(f"cannot read model card {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VitscopeError(f"{path} is not a valid TOML model card: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise VitscopeError(f"model card {path}: {where}: {first['msg']}") from error
    if card.teaching not in TEACHINGS:
        raise VitscopeError(f"model card {path}: teaching '{card.teaching}' is not one of {', '.join(TEACHINGS)}")
    return card.model_copy(update={"weights": path.parent / card.weights})
