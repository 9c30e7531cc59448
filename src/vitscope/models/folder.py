"""A folder that `save_pretrained` wrote, or a copy of a hub repository: its config.json says what its weights are.

Everything in the configuration is somebody's claim: numbers are bounded, the architecture is one of timm's, and what
would be computed otherwise than in `transformers` is refused by its name in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vitscope._torchvision import timm
from vitscope.core.errors import BadCheckpoint, shorten
from vitscope.core.reading import read_json
from vitscope.data.preprocessing import Preprocessing, Triple
from vitscope.models.card import CardPreprocessing, Pixels
from vitscope.models.checkpoints.propose import AIMV2, SIZES
from vitscope.models.weights import HUB_FILES

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
LARGEST = 1 << 20  # bytes: settings are a page of text
INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")  # of weights in several files
MOST_EPSILON = 1.1e-5  # timm's norms add 1e-5 or 1e-6; which of these, or less, changes nothing that is measured


@dataclass(frozen=True)
class Described:
    """What a folder says: the timm architecture and its options, the weights, and mean and std of the training."""

    architecture: str
    weights: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    mean: Triple | None = None
    std: Triple | None = None

    def normalised(self, preprocessing: Preprocessing) -> Preprocessing:
        """The preprocessing with the mean and std that the folder says, if it says them."""
        return replace(preprocessing, mean=self.mean or preprocessing.mean, std=self.std or preprocessing.std)


def _whole(low: int, high: int) -> Any:
    return Field(strict=True, ge=low, le=high)


class VitConfig(BaseModel):
    """What shapes a network, under the names of `transformers`; a file need not repeat its model's defaults."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    hidden_size: Annotated[int, _whole(8, 16384)] = 768
    num_hidden_layers: Annotated[int, _whole(1, 256)] = 12
    num_attention_heads: Annotated[int, _whole(1, 512)] = 12
    intermediate_size: Annotated[int, _whole(8, 131072)] = 3072
    image_size: Pixels | tuple[Pixels, Pixels] = 224
    patch_size: Annotated[int, _whole(1, 1024)] = 16
    num_channels: Annotated[int, _whole(3, 3)] = 3
    mlp_ratio: Annotated[float, Field(strict=True, ge=0.25, le=32)] = 4
    num_register_tokens: Annotated[int, _whole(0, 256)] = 0
    hidden_act: Annotated[str, Field(max_length=60)] = "gelu"
    layer_norm_eps: Annotated[float, Field(strict=True, ge=0, le=MOST_EPSILON)] = 1e-12
    rms_norm_eps: Annotated[float, Field(strict=True, ge=0, le=MOST_EPSILON)] = 1e-5
    rope_theta: Annotated[float, Field(strict=True, ge=1, le=1e9)] = 100.0
    qkv_bias: bool = Field(True, strict=True)
    query_bias: bool = Field(True, strict=True)
    key_bias: bool = Field(False, strict=True)
    value_bias: bool = Field(True, strict=True)
    use_swiglu_ffn: bool = Field(False, strict=True)
    use_gated_mlp: bool = Field(False, strict=True)
    use_absolute_position_embeddings: bool = Field(False, strict=True)

    @property
    def size(self) -> str:
        return SIZES.get((self.hidden_size, self.num_hidden_layers), "")

    def shape(self, hidden: int | None = None) -> dict[str, Any]:
        """timm's options of the network's size; hidden: width of the MLP, if not `intermediate_size`."""
        hidden = hidden or self.intermediate_size
        return {
            "img_size": self.image_size,
            "patch_size": self.patch_size,
            "embed_dim": self.hidden_size,
            "depth": self.num_hidden_layers,
            "num_heads": self.num_attention_heads,
            "mlp_ratio": (hidden + 0.5) / self.hidden_size,  # timm cuts the product off after the point
        }


Built = tuple[list[str], dict[str, Any]]  # timm architectures, the best name first, and options
ACTIVATIONS = {"gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "quick_gelu": "quick_gelu", "relu": "relu"}


def _plain(kind: str, fallback: str) -> Callable[[VitConfig], Built]:
    def build(config: VitConfig) -> Built:
        activation = _one_of(config, *ACTIVATIONS)
        options = config.shape() | ({} if config.qkv_bias else {"qkv_bias": False})
        options |= {} if activation == "gelu" else {"act_layer": ACTIVATIONS[activation]}
        return [kind.format(size=config.size, patch=config.patch_size), fallback], options

    return build


def _beit(config: VitConfig) -> Built:
    _one_of(config, "gelu")
    if config.use_absolute_position_embeddings:
        raise ValueError("use_absolute_position_embeddings: a BEiT with them has no architecture in timm")
    return [f"beit_{config.size}_patch{config.patch_size}_224", "beit_base_patch16_224"], config.shape()


def _dinov2(config: VitConfig) -> Built:
    _one_of(config, "gelu")
    registers = {"reg_tokens": config.num_register_tokens} if config.num_register_tokens else {}
    kind = f"reg{config.num_register_tokens}_dinov2" if registers else "dinov2"
    fallback = "vit_base_patch14_reg4_dinov2" if registers else "vit_base_patch14_dinov2"
    options = config.shape(int(config.hidden_size * config.mlp_ratio)) | registers
    if config.use_swiglu_ffn:
        if config.mlp_ratio != 4:
            raise ValueError(f"mlp_ratio: {config.mlp_ratio:g} with use_swiglu_ffn has no architecture in timm")
        fallback = "vit_giant_patch14_reg4_dinov2" if registers else "vit_giant_patch14_dinov2"
        del options["mlp_ratio"]
        return [fallback], options
    return [f"vit_{config.size}_patch{config.patch_size}_{kind}", fallback], options


def _dinov3(config: VitConfig) -> Built:
    gated = config.use_gated_mlp
    _one_of(config, "silu" if gated else "gelu")
    if config.key_bias or config.query_bias != config.value_bias:
        raise ValueError("key_bias: timm's DINOv3 has a bias on queries and values, or on none of the three")
    biased = "_qkvb" if config.query_bias else ""
    options = config.shape() | {"num_reg_tokens": config.num_register_tokens, "rope_temperature": config.rope_theta}
    options |= {"swiglu_mlp": True, "swiglu_align_to": 1} if gated else {}
    name = f"vit_{config.size}{'_plus' if gated else ''}_patch{config.patch_size}_dinov3{biased}"
    return [name, f"vit_base_patch16_dinov3{biased}"], options


def _clip(config: VitConfig) -> Built:
    kind = "clip_quickgelu" if _one_of(config, "quick_gelu", "gelu") == "quick_gelu" else "clip"
    names = [f"vit_{config.size}_patch{config.patch_size}_{kind}_{p}" for p in (config.image_size, 224)]
    return [*names, f"vit_base_patch16_{kind}_224"], config.shape()


def _siglip(config: VitConfig) -> Built:
    options = config.shape() | {"act_layer": ACTIVATIONS[_one_of(config, *ACTIVATIONS)]}
    names = [f"vit_{config.size}_patch{config.patch_size}_siglip_{p}" for p in (config.image_size, 224)]
    return [*names, "vit_base_patch16_siglip_224"], options


def _aimv2(config: VitConfig) -> Built:
    _one_of(config, "silu")
    size = AIMV2.get((config.hidden_size, config.num_hidden_layers), "")
    names = [f"aimv2_{size}_patch{config.patch_size}_{config.image_size}", "aimv2_large_patch14_224"]
    return names, config.shape() | {"qkv_bias": config.qkv_bias}


def _one_of(config: VitConfig, *activations: str) -> str:
    if config.hidden_act not in activations:
        raise ValueError(f"hidden_act: '{shorten(config.hidden_act)}' is not {' or '.join(activations)}")
    return config.hidden_act


VIT = _plain("vit_{size}_patch{patch}_224", "vit_base_patch16_224")
TYPES: dict[str, Callable[[VitConfig], Built]] = {  # model_type -> how timm builds it
    "vit": VIT,
    "vit_mae": VIT,
    "deit": _plain("deit_{size}_distilled_patch{patch}_224", "deit_base_distilled_patch16_224"),
    "ijepa": _plain("vit_{size}_patch{patch}_gap_224", "vit_huge_patch14_gap_224"),
    "beit": _beit,
    "dinov2": _dinov2,
    "dinov2_with_registers": _dinov2,
    "dinov3_vit": _dinov3,
    "clip_vision_model": _clip,
    "siglip_vision_model": _siglip,
    "aimv2_vision_model": _aimv2,
}
DEFAULTS: dict[str, dict[str, Any]] = {  # where they differ from those of `VitConfig`
    "dinov2": {"patch_size": 14, "layer_norm_eps": 1e-6},
    "dinov2_with_registers": {"num_register_tokens": 4, "layer_norm_eps": 1e-6},
    "dinov3_vit": {
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_attention_heads": 6,
        "layer_norm_eps": 1e-5,
    },
    "clip_vision_model": {"patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5},
    "siglip_vision_model": {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6},
    "aimv2_vision_model": {
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "patch_size": 14,
        "hidden_act": "silu",
        "qkv_bias": False,
    },
}
WITH_TEXT = {"clip": "clip_vision_model", "siglip": "siglip_vision_model", "aimv2": "aimv2_vision_model"}


def read_folder(folder: Path) -> Described:
    """What config.json says of the weights beside it."""
    path = folder / CONFIG
    if not path.is_file():
        raise BadCheckpoint(
            f"{folder} is a folder without {CONFIG}: give a weights file, or a folder that save_pretrained wrote"
        )
    config = read_json(path, most=LARGEST, error=BadCheckpoint)
    if not isinstance(config, dict):
        raise BadCheckpoint(f"{path} is not a table of settings")
    try:
        architecture, options = _from_timm(config) if "architecture" in config else _from_transformers(config)
        mean, std = _normalisation(folder, config)
    except ValidationError as error:
        first = error.errors()[0]
        where = shorten(".".join(str(part) for part in first["loc"]))
        raise BadCheckpoint(f"{path}: {where}: {first['msg']}") from error
    except ValueError as error:
        raise BadCheckpoint(f"{path}: {error}") from error
    return Described(architecture, _weights(folder), options, mean, std)


def _from_timm(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """As timm's own repositories, and `transformers` around a timm model, have it."""
    architecture, options = config["architecture"], config.get("model_args") or {}
    if not isinstance(architecture, str) or not isinstance(options, dict):
        raise ValueError("architecture: a name, and model_args a table, are expected")
    if not timm.is_model(architecture.partition(".")[0]):
        raise ValueError(f"architecture: timm has none that is called '{shorten(architecture)}'")
    known = config.get("pretrained_cfg")
    tag = known.get("tag") if isinstance(known, dict) else None
    tagged = f"{architecture}.{tag}"
    return tagged if isinstance(tag, str) and timm.models.is_model_pretrained(tagged) else architecture, options


def _from_transformers(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise ValueError("model_type: the name of a model of transformers is expected")
    inner = config.get("vision_config", config)
    if kind in WITH_TEXT and isinstance(inner, dict):
        kind, config = WITH_TEXT[kind], inner
    if kind in ("siglip2", "siglip2_vision_model"):
        raise ValueError("model_type: 'siglip2' is SigLIP 2 NaFlex, for images of any shape, which is not covered")
    if kind not in TYPES:
        raise ValueError(f"model_type: '{shorten(kind)}' is not covered: it is none of {', '.join(TYPES)}")
    said = {key: value for key, value in config.items() if value is not None}
    read = VitConfig.model_validate({**DEFAULTS.get(kind, {}), **said})
    if read.hidden_size % read.num_attention_heads:
        raise ValueError(f"num_attention_heads: {read.num_attention_heads} do not divide a width of {read.hidden_size}")
    names, options = TYPES[kind](read)
    return next(name for name in names if timm.is_model(name)), options


def _normalisation(folder: Path, config: Mapping[str, Any]) -> tuple[Triple | None, Triple | None]:
    """Mean and std: what a preprocessor says, or timm's configuration."""
    path = folder / PROCESSOR
    said = read_json(path, most=LARGEST, error=BadCheckpoint) if path.is_file() else config.get("pretrained_cfg")
    if not isinstance(said, dict):
        return None, None
    found = CardPreprocessing.model_validate(
        {"mean": said.get("image_mean", said.get("mean")), "std": said.get("image_std", said.get("std"))}
    )
    return found.mean, found.std


def _weights(folder: Path) -> Path:
    names = (HUB_FILES[0], INDICES[0], *HUB_FILES[1:], INDICES[1])
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise BadCheckpoint(f"{folder} has a {CONFIG} but no weights: looked for {', '.join(names)}")
    return found
