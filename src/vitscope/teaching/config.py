"""How a network is taught: one list of settings for Python, for the command and for a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.reading import read_toml, user_path

# Numbers with bounds, for settings and recipes: a value outside is refused before anything is taught.
Count = Annotated[int, Field(ge=1, le=10**9)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, lt=1)]  # neither nothing nor all
UpToAll = Annotated[float, Field(gt=0, le=1)]
STRICT = ConfigDict(extra="forbid", validate_default=True)

# What may be another in a run that goes on, when that is said; the card then tells what was changed, and when.
CHANGEABLE = ("epochs", "warmup", "cooldown", "matrix_rate", "rate", "matrix_decay", "decay", "clip")


class TrainConfig(BaseModel):
    """Everything that decides the weights, apart from the teacher and the images."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    arch: str = Field(default="", description="Name of a timm ViT, such as vit_small_patch16_224.")
    size: Count | None = Field(
        default=None, description="Edge of the network's input in pixels; the architecture's own if not given."
    )
    options: Annotated[dict[str, Any], Parameter(parse=False)] = Field(
        default={},
        description="Further keyword arguments of the architecture, such as patch_size or depth.",
    )
    recipe: Annotated[dict[str, Any], Parameter(parse=False)] = Field(
        default={}, description="Changes of the teacher's recipe, such as momentum = 0.996; see the recipe in its file."
    )
    weights: Path | None = Field(
        default=None, description="Begin with the weights of this model card or checkpoint instead of untaught ones."
    )
    epochs: Positive = Field(default=100, description="How often each image is seen.")
    batch: Count = Field(default=64, description="Images per step, over all processes.")
    accumulate: Count = Field(
        default=1,
        description="Parts into which the batch is divided, one after the other, when it does not fit into memory. "
        "Teachers that compare images (clip, moco, dino) then compare within a part.",
    )
    warmup: Probability = Field(default=0.05, description="Share of the steps in which the learning rate rises.")
    cooldown: Probability = Field(
        default=0.5, description="Share of the steps in which it falls; 1 is a cosine over the entire run."
    )
    matrix_rate: NotNegative = Field(default=0.02, description="Learning rate of the hidden matrices (Muon).")
    rate: NotNegative = Field(default=1.5e-3, description="Learning rate of everything else (AdamW).")
    matrix_decay: NotNegative = Field(default=0.1, description="Weight decay of the hidden matrices.")
    decay: NotNegative = Field(
        default=0.05, description="Weight decay of everything else that has two or more dimensions."
    )
    layer_decay: UpToAll = Field(
        default=1.0,
        description="Each block learns by this factor more slowly than the one after it, as in fine-tuning.",
    )
    clip: Positive = Field(default=3.0, description="Largest norm of the gradient; longer ones are shortened.")
    ema: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="Ship a moving average of the weights with this momentum; 0: as they are.",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="Decides first weights, order of images and augmentation.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="What the network computes in; auto is bfloat16 on GPUs that have it, else float32."
    )

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """The settings of a TOML file; those that are not in it have their defaults."""
        try:
            return cls.model_validate(read_toml(user_path(path)))
        except ValidationError as error:
            raise sentence(error, f"{path}:") from error

    def but(self, changes: dict[str, Any]) -> TrainConfig:
        """The same with some settings changed."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            return TrainConfig.model_validate({**given, **changes})
        except ValidationError as error:
            raise sentence(error, "the setting") from error

    @property
    def network(self) -> dict[str, Any]:
        """Keyword arguments of the architecture."""
        return {**self.options, **({} if self.size is None else {"img_size": self.size})}

    def told(self) -> dict[str, Any]:
        """All settings as plain data, for checkpoints and cards."""
        return self.model_dump(mode="json")


def divides(width: str) -> AfterValidator:
    """The number of heads must divide the width, which is the field of this name, before it."""

    def check(heads: int, info: ValidationInfo) -> int:
        if width in info.data and info.data[width] % heads:
            raise ValueError(f"it must divide {width}, which is {info.data[width]}")
        return heads

    return AfterValidator(check)


def sentence(error: ValidationError, owner: str) -> VitscopeError:
    """What is wrong with the first bad value, in one sentence."""
    first: Any = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    words = first["msg"].removeprefix("Value error, ")
    return VitscopeError(
        f"{owner} {where} is {shorten(repr(first['input']))}: {words[:1].lower()}{words[1:]}".replace("  ", " ")
    )
