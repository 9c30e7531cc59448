"""What a model card may say about an architecture: keywords that shape the network, within bounds, and nothing else.

timm's `create_model` takes its keywords from one bag: beside the depth and width of a network stand the path of a
pickle to load, a cache to write and an address to ask. A card is a file that somebody was given, so the bag is
packed here: a keyword that is not in this table is refused, whatever timm would have made of it.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from vitscope.core.errors import VitscopeError, shorten

Rule = tuple[str, Callable[[Any], bool]]  # what is expected, in words, and whether a value is that

NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_.-]+)?")  # architecture, or architecture.tag: no address, no path
MOST_CELLS = 1 << 14  # patches of an image: attention among more does not fit into memory
MOST_SIDE = 4096  # pixels
SEEDS = 1 << 63


def _whole(low: int, high: int) -> Rule:
    return f"a whole number from {low} to {high}", lambda v: type(v) is int and low <= v <= high


def _real(low: float, high: float) -> Rule:
    return (
        f"a number from {low:g} to {high:g}",
        lambda v: type(v) in (int, float) and math.isfinite(v) and low <= v <= high,
    )


def _pair(low: int, high: int) -> Rule:
    words, one = _whole(low, high)
    return (
        f"{words}, or two of them",
        lambda v: one(v) or (isinstance(v, (list, tuple)) and len(v) == 2 and all(map(one, v))),
    )


def _word(*words: str) -> Rule:
    return f"one of {', '.join(map(repr, words))}", lambda v: isinstance(v, str) and v in words


FLAG: Rule = ("true or false", lambda v: type(v) is bool)
SHARE = _real(0, 0.99)
LAYERS = ("layernorm", "layernorm2d", "rmsnorm", "simplenorm", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu")

RULES: dict[str, Rule] = {
    "img_size": _pair(1, MOST_SIDE),
    "patch_size": _pair(1, 1024),
    "embed_dim": _whole(8, 16384),
    "depth": _whole(1, 256),
    "num_heads": _whole(1, 512),
    "num_kv_heads": _whole(1, 512),
    "mlp_ratio": _real(0.25, 32),
    "reg_tokens": _whole(0, 256),
    "num_reg_tokens": _whole(0, 256),
    "init_values": _real(0, 100),
    "ref_feat_shape": _pair(1, MOST_SIDE),
    "swiglu_align_to": _whole(0, 4096),
    "rope_temperature": _real(1, 1e9),
    "rope_grid_offset": _real(-16, 16),
    "pos_embed": _word("", "none", "learn"),
    "global_pool": _word("", "token", "avg", "avgmax", "max", "map"),
    "attn_type": _word("eva", "rope"),
    "rope_type": _word("", "cat", "mixed", "dinov3", "none"),
    "rope_grid_indexing": _word("ij", "xy"),
    "norm_layer": _word(*LAYERS[:4]),
    "embed_norm_layer": _word(*LAYERS[:4]),
    "act_layer": _word(*LAYERS[4:]),
    **dict.fromkeys(
        (
            *("qkv_bias", "qkv_fused", "qk_norm", "proj_bias", "class_token", "no_embed_class", "pre_norm"),
            *("final_norm", "fc_norm", "scale_attn_norm", "scale_mlp_norm", "scale_mlp", "scale_attn_inner"),
            *("swiglu_mlp", "use_abs_pos_emb", "use_rel_pos_bias", "use_shared_rel_pos_bias", "use_rot_pos_emb"),
            *("use_post_norm", "use_pre_transformer_norm", "use_post_transformer_norm", "use_fc_norm"),
            *("attn_only_layer_scale", "rope_rotate_half", "dynamic_img_size"),
        ),
        FLAG,
    ),
    # without effect outside training, but training scripts write them into their cards
    **dict.fromkeys(
        ("drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate"), SHARE
    ),
}


def shape_options(architecture: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, once it is certain that they only shape the network, and that this machine can hold it."""
    if not NAME.fullmatch(architecture):
        raise VitscopeError(
            f"'{shorten(architecture)}' is not the name of an architecture: hubs and folders are not asked, "
            "`vitscope models` lists names"
        )
    for key, value in options.items():
        if key not in RULES:
            near = difflib.get_close_matches(shorten(key, 60), RULES, n=1, cutoff=0.6)
            hint = f"did you mean '{near[0]}'?" if near else f"use such as {', '.join(list(RULES)[:6])}"
            raise VitscopeError(
                f"the option '{shorten(key, 60)}' does not shape a network and is refused for {architecture}: {hint}"
            )
        expected, fits = RULES[key]
        if not fits(value):
            raise VitscopeError(
                f"the option {key} of {architecture} must be {expected}, not {shorten(repr(value), 60)}"
            )
    _check_memory(architecture, options)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def _check_memory(architecture: str, options: Mapping[str, Any]) -> None:
    """A few digits in a card can ask for more memory than there is; a network is refused before it is begun."""
    if not {"depth", "embed_dim", "mlp_ratio"} & options.keys():
        return
    width, depth = options.get("embed_dim", 768), options.get("depth", 12)
    weights = depth * width**2 * (4 + 2 * options.get("mlp_ratio", 4))
    if (needed := 4 * weights) > (there := memory_of_machine()):
        raise VitscopeError(
            f"{architecture} with {depth} blocks of width {width} needs {needed / 1e9:,.0f} GB for its weights, and "
            f"this machine has {there / 1e9:,.0f} GB: make it smaller"
        )


def memory_of_machine() -> int:
    """Bytes of memory; a terabyte where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 40


def check_input_size(architecture: str, module: nn.Module, size: tuple[int, ...]) -> None:
    """An input size that was asked for, against the patches of the network: no pixel is dropped silently."""
    patch = getattr(getattr(module, "patch_embed", None), "patch_size", None)
    if patch is None:
        return
    patch = (patch, patch) if isinstance(patch, int) else tuple(patch)
    for pixels, step in zip(size, patch, strict=True):
        if pixels % step or pixels < step:
            near = sorted({max(pixels // step, 1) * step, -(-pixels // step) * step} - {0})
            raise VitscopeError(
                f"an input of {pixels} pixels does not divide into patches of {step} of {architecture}: "
                f"use {' or '.join(map(str, near))}"
            )
    if (cells := math.prod(p // s for p, s in zip(size, patch, strict=True))) > MOST_CELLS:
        raise VitscopeError(
            f"an input of {size[0]} x {size[1]} pixels makes {cells:,} patches in {architecture}, more than the "
            f"{MOST_CELLS:,} whose attention fits into memory: use a smaller size"
        )


def check_seed(seed: int) -> None:
    if not 0 <= seed < SEEDS:
        raise VitscopeError(f"the seed {shorten(seed, 40)} is not a number from 0 to {SEEDS - 1}: choose another")
