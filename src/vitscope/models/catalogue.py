"""The models known by name, as data: adding a model is adding an entry.

The study's twenty configurations carry short names (`dino-b16`); modern models follow. Anything else is reached by
its timm name, `random:<arch>`, a weights file or a model card. See `registry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vitscope.data.preprocessing import CLIP, HALF, IMAGENET, Triple

_DINO_URL = "https://dl.fbaipublicfiles.com/dino"
_MOCO_URL = "https://dl.fbaipublicfiles.com/moco-v3"
_MAE_URL = "https://dl.fbaipublicfiles.com/mae/pretrain"
_BEIT_URL = "https://github.com/microsoft/unilm/tree/master/beit"
_AUGREG_URL = "https://storage.googleapis.com/vit_models/augreg"
_AUGREG = {  # how each was regularised and tuned, as the names of the official files say
    **dict.fromkeys(("s32", "s16"), "aug_light1-wd_0.03-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.03"),
    "b32": "aug_medium1-wd_0.03-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.03",
    **dict.fromkeys(("b16", "b8"), "aug_medium1-wd_0.1-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.01"),
    "l16": "aug_medium1-wd_0.1-do_0.1-sd_0.1--imagenet2012-steps_20k-lr_0.01",
}


@dataclass(frozen=True)
class Entry:
    """One model: its architecture, where its weights come from, how images reach it, how it was taught."""

    name: str
    architecture: str  # timm architecture name
    teaching: str  # key of vitscope.core.teachings
    title: str
    hub: str | None = None  # Hugging Face repository with timm weights
    files: tuple[str, ...] = ()  # official file names that are recognised in the weights folder
    url: str | None = None  # where an official file is published
    normalisation: tuple[Triple, Triple] | None = None  # mean and std; None: as timm's config of the weights says
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the architecture
    group: str = "study"


def _fs(size: str, patch: int) -> Entry:
    architecture = f"vit_{size}_patch{patch}_224"
    short = f"{size[0]}{patch}"
    file = f"{size[0].upper()}_{patch}-i21k-300ep-lr_0.001-{_AUGREG[short]}-res_224.npz"
    return Entry(
        f"fs-{short}",
        architecture,
        "fs",
        f"FS {short[0].upper()}/{patch}",
        hub=f"timm/{architecture}.augreg_in21k_ft_in1k",
        files=(file,),
        url=f"{_AUGREG_URL}/{file}",
        normalisation=HALF,
    )


def _clip(size: str, patch: int, pixels: int = 224) -> Entry:
    # OpenAI trained with QuickGELU; timm's architectures without it in their name compute another function.
    architecture = f"vit_{size}_patch{patch}_clip_quickgelu_{pixels}"
    suffix = "" if pixels == 224 else f"-{pixels}"
    return Entry(
        f"clip-{size[0]}{patch}{suffix}",
        architecture,
        "clip",
        f"CLIP {size[0].upper()}/{patch}{suffix.replace('-', ' @')}",
        hub=f"timm/{architecture}.openai",
        files=(f"ViT-{size[0].upper()}-{patch}{suffix + 'px' if suffix else ''}.pt",),
        normalisation=CLIP,
        group="study" if pixels == 224 else "more",
    )


def _dino(size: str, patch: int) -> Entry:
    architecture = f"vit_{size}_patch{patch}_224"
    official = {"small": "deitsmall", "base": "vitbase"}[size] + str(patch)
    if (size, patch) == ("small", 8):
        official += "_300ep"  # the study's S/8
    return Entry(
        f"dino-{size[0]}{patch}",
        architecture,
        "dino",
        f"DINO {size[0].upper()}/{patch}",
        hub=None if official.endswith("_300ep") else f"timm/{architecture}.dino",
        files=(f"dino_{official}_pretrain.pth",),
        url=f"{_DINO_URL}/dino_{official}_pretrain/dino_{official}_pretrain.pth",
        normalisation=IMAGENET,
    )


def _moco(size: str) -> Entry:
    return Entry(
        f"moco-{size[0]}16",
        f"vit_{size}_patch16_224",
        "moco",
        f"MoCo-v3 {size[0].upper()}/16",
        files=(f"vit-{size[0]}-300ep.pth.tar",),
        url=f"{_MOCO_URL}/vit-{size[0]}-300ep/vit-{size[0]}-300ep.pth.tar",
        normalisation=IMAGENET,
        options={"num_heads": 12},  # MoCo-v3's small model has 12 heads of 32
    )


def _mae(size: str, patch: int) -> Entry:
    architecture = f"vit_{size}_patch{patch}_224"
    return Entry(
        f"mae-{size[0]}{patch}",
        architecture,
        "mae",
        f"MAE {size[0].upper()}/{patch}",
        hub=f"timm/{architecture}.mae",
        files=(f"mae_pretrain_vit_{size}.pth",),
        url=f"{_MAE_URL}/mae_pretrain_vit_{size}.pth",
        normalisation=IMAGENET,
    )


def _beit(size: str) -> Entry:
    return Entry(
        f"beit-{size[0]}16",
        f"beit_{size}_patch16_224",
        "beit",
        f"BEiT {size[0].upper()}/16",
        files=(f"beit_{size}_patch16_224_pt22k.pth",),
        url=_BEIT_URL,
        normalisation=HALF,
    )


def _modern(name: str, timm_name: str, title: str, teaching: str = "other", **options: Any) -> Entry:
    architecture = timm_name.partition(".")[0]
    return Entry(name, architecture, teaching, title, hub=f"timm/{timm_name}", options=options, group="modern")


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *(
            _fs(*shape)
            for shape in (("small", 32), ("small", 16), ("base", 32), ("base", 16), ("base", 8), ("large", 16))
        ),
        *(_clip(*shape) for shape in (("base", 32), ("base", 16), ("large", 14))),
        *(_dino(*shape) for shape in (("small", 16), ("small", 8), ("base", 16), ("base", 8))),
        *(_moco(size) for size in ("small", "base")),
        *(_mae(*shape) for shape in (("base", 16), ("large", 16), ("huge", 14))),
        *(_beit(size) for size in ("base", "large")),
        _clip("large", 14, 336),
        _modern("dinov2-s14", "vit_small_patch14_dinov2.lvd142m", "DINOv2 S/14", img_size=518),
        _modern("dinov2-b14", "vit_base_patch14_dinov2.lvd142m", "DINOv2 B/14", img_size=518),
        _modern("dinov2-l14", "vit_large_patch14_dinov2.lvd142m", "DINOv2 L/14", img_size=518),
        _modern("dinov2-reg-s14", "vit_small_patch14_reg4_dinov2.lvd142m", "DINOv2 S/14 + registers", img_size=518),
        _modern("dinov2-reg-b14", "vit_base_patch14_reg4_dinov2.lvd142m", "DINOv2 B/14 + registers", img_size=518),
        _modern("dinov2-reg-l14", "vit_large_patch14_reg4_dinov2.lvd142m", "DINOv2 L/14 + registers", img_size=518),
        _modern("dinov3-s16", "vit_small_patch16_dinov3.lvd1689m", "DINOv3 S/16"),
        _modern("dinov3-b16", "vit_base_patch16_dinov3.lvd1689m", "DINOv3 B/16"),
        _modern("dinov3-l16", "vit_large_patch16_dinov3.lvd1689m", "DINOv3 L/16"),
        _modern("siglip2-b16", "vit_base_patch16_siglip_224.v2_webli", "SigLIP 2 B/16"),
        _modern("siglip2-l16", "vit_large_patch16_siglip_256.v2_webli", "SigLIP 2 L/16"),
        _modern("siglip-b16", "vit_base_patch16_siglip_224.webli", "SigLIP B/16"),
        _modern("eva02-s14", "eva02_small_patch14_224.mim_in22k", "EVA-02 S/14"),
        _modern("eva02-b14", "eva02_base_patch14_224.mim_in22k", "EVA-02 B/14"),
        _modern("eva02-l14", "eva02_large_patch14_224.mim_m38m", "EVA-02 L/14"),
        _modern("ijepa-h14", "vit_huge_patch14_gap_224.in1k_ijepa", "I-JEPA H/14"),
        _modern("deit-b16", "deit_base_patch16_224.fb_in1k", "DeiT B/16"),
        _modern("deit-distilled-b16", "deit_base_distilled_patch16_224.fb_in1k", "DeiT B/16 distilled"),
        _modern("deit3-s16", "deit3_small_patch16_224.fb_in22k_ft_in1k", "DeiT-III S/16"),
        _modern("deit3-b16", "deit3_base_patch16_224.fb_in22k_ft_in1k", "DeiT-III B/16"),
        _modern("deit3-l16", "deit3_large_patch16_224.fb_in22k_ft_in1k", "DeiT-III L/16"),
    )
}
