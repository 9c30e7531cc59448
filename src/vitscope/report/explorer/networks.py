"""Networks inside a page: the zoo's weights in 8 bits, in the names that the page's own forward pass reads."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from vitscope.core.errors import UnsupportedModel
from vitscope.core.files import make_folder, write_text
from vitscope.models.backbone import Backbone
from vitscope.models.spec import Spec
from vitscope.report.explorer.arrays import packed
from vitscope.report.explorer.gallery import FIRST, menagerie_gallery
from vitscope.report.explorer.page import file_page, model_data
from vitscope.report.page.pictures import data_uri

LARGEST = 8_000_000  # parameters: more are a page that nobody waits for
PICTURES = 24  # of the menagerie, to begin with


def network_arrays(backbone: Backbone) -> dict[str, Tensor]:
    """Weights under plain names, float32: prefix, positions, patch, rope, N.norm1, N.qkv, N.proj, N.norm2, N.fc1 ...

    The page computes pre-norm blocks with LayerNorm, GELU, one head size and, if there is a `rope` (N, 2 d: sines, then
    cosines), rotated queries and keys of the patches. Whatever else a network has is refused here.
    """
    module: Any = backbone.module
    unusual = [name for name in _parts(module) if name not in KNOWN_PARTS]
    if unusual or backbone.shape.parameters > LARGEST:
        why = f"it has {unusual[0]}" if unusual else f"it has more than {LARGEST:,} parameters"
        raise UnsupportedModel(f"{backbone.title} cannot run in a page: {why}")
    width = backbone.width
    prefix = [
        t.reshape(-1, width) for name in ("cls_token", "reg_token") if (t := getattr(module, name, None)) is not None
    ]
    tokens = torch.cat(prefix) if prefix else torch.zeros(0, width)
    positions = torch.zeros(backbone.layout.tokens, width)
    if module.pos_embed is not None:
        embedded = module.pos_embed.reshape(-1, width)
        positions[len(positions) - len(embedded) :] = embedded  # some models place their patches only
    arrays = {
        "prefix": tokens,
        "positions": positions,
        "patch.weight": module.patch_embed.proj.weight.reshape(width, -1),
        "patch.bias": module.patch_embed.proj.bias,
    }
    rope = getattr(module, "rope", None)
    if rope is not None:
        arrays["rope"] = rope.get_embed()
    for number, block in enumerate(module.blocks):
        for name, layer in _layers(block).items():
            arrays[f"{number}.{name}.weight"] = layer.weight
            bias = getattr(layer, "bias", None)
            arrays[f"{number}.{name}.bias"] = torch.zeros(len(layer.weight)) if bias is None else bias
    return {name: array.detach().float().cpu() for name, array in arrays.items()}


KNOWN_PARTS = frozenset({"LayerNorm", "Linear", "GELU", "Dropout", "Identity", "Conv2d", "PatchEmbed", "Attention",
    "AttentionRope", "Mlp", "Block", "EvaBlock", "ModuleList", "Sequential", "DropPath", "VisionTransformer", "Eva",
    "RotaryEmbeddingCat"})  # fmt: skip


def _parts(module: nn.Module) -> list[str]:
    """Kinds of modules, and settings that change what they compute."""
    found = [type(part).__name__ for part in module.modules()]
    for block in module.blocks:  # type: ignore[union-attr]
        attention: Any = block.attn
        if getattr(attention, "qkv", None) is None:
            found.append("separate projections")
        if getattr(attention, "rotate_half", False):
            found.append("rotations of halves")
        if getattr(attention, "gate", None) is not None:
            found.append("gated attention")
        if any(not isinstance(getattr(attention, n, nn.Identity()), nn.Identity) for n in ("q_norm", "k_norm", "norm")):
            found.append("normalised queries and keys")
        if any(getattr(block, name, None) is not None for name in ("gamma_1", "gamma_2")):
            found.append("scaled branches")
    if not isinstance(getattr(module, "norm_pre", nn.Identity()), nn.Identity):
        found.append("a norm before its blocks")
    return found


def _layers(block: Any) -> dict[str, Any]:
    return {
        "norm1": block.norm1, "qkv": block.attn.qkv, "proj": block.attn.proj,
        "norm2": block.norm2, "fc1": block.mlp.fc1, "fc2": block.mlp.fc2,
    }  # fmt: skip


def in_eight_bits(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices of the blocks as int8 with a float32 scale for each row (`name.scale`); the rest as float32."""
    small: dict[str, Tensor] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and name[0].isdigit():
            scale = (array.abs().amax(1) / 127).clamp_min(1e-12)  # (outs,)
            small[name] = (array / scale[:, None]).round().to(torch.int8)
            small[f"{name}.scale"] = scale
        else:
            small[name] = array
    return small


def restored(small: dict[str, Tensor]) -> dict[str, Tensor]:
    """What the page computes with: `in_eight_bits` undone, as far as it can be."""
    return {
        name: array.float() * small[f"{name}.scale"][:, None] if f"{name}.scale" in small else array
        for name, array in small.items()
        if not name.endswith(".scale")
    }


def network_settings(backbone: Backbone) -> dict[str, Any]:
    """What the forward pass has to know beside the weights."""
    block: Any = backbone.module.blocks[0]  # type: ignore[index]
    return {
        "patch": list(backbone.patch),
        "mean": list(backbone.preprocessing.mean),
        "std": list(backbone.preprocessing.std),
        "hidden": block.mlp.fc1.out_features,
        "eps": block.norm1.eps,
    }


def zipped(data: bytes) -> str:
    """gzip and base64; the same data give the same text."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def as_uri(image: Image.Image) -> str:
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(image.height, image.width, 3)
    return data_uri(pixels.permute(2, 0, 1))


def export_networks(specs: Sequence[Spec], path: Path) -> Path:
    """Write one HTML file that runs these networks itself, with some images of the menagerie."""
    backbones = [spec.load("cpu") for spec in specs]
    described = [
        data | {"network": network_settings(backbone)}
        for data, backbone in zip(model_data(specs), backbones, strict=True)
    ]
    blocks = {
        f"network-{i}": zipped(packed(in_eight_bits(network_arrays(backbone)))) for i, backbone in enumerate(backbones)
    }
    gallery = [
        {"name": f"f{i}", "title": sample.id, "picture": as_uri(sample.load())}
        for i, sample in enumerate(menagerie_gallery(PICTURES))
    ]
    boot = {
        "source": "networks",
        "models": described,
        "gallery": gallery,
        "menagerie": True,
        "first": [f"f{i}" for i in FIRST],
    }
    make_folder(path.parent)
    write_text(path, file_page(boot, blocks))
    return path
