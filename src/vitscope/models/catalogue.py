"""The models known by name, as data: adding a model is adding an entry.

The study's twenty configurations carry short names (`dino-b16`); modern models follow. Anything else is reached by
its timm name, `random:<arch>`, a weights file or a model card. See `registry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from vitscope.data.preprocessing import CLIP, HALF, IMAGENET, Triple

_DINO_URL = "https://dl.fbaipublicfiles.com/dino"
_MOCO_URL = "https://dl.fbaipublicfiles.com/moco-v3"
_MAE_URL = "https://dl.fbaipublicfiles.com/mae/pretrain"
_BEIT_URL = "https://github.com/microsoft/unilm/tree/master/beit"
_DINOV2_URL = "https://dl.fbaipublicfiles.com/dinov2"
_DINOV3_URL = "https://ai.meta.com/resources/models-and-libraries/dinov3-downloads"
_SIGLIP_URL = "https://storage.googleapis.com/big_vision/siglip2"
_EVA02_URL = "https://huggingface.co/Yuxin-CV/EVA-02"
_AUGREG_URL = "https://storage.googleapis.com/vit_models/augreg"
_AUGREG = {  # how each was regularised and tuned, as the names of the official files say
    **dict.fromkeys(("s32", "s16"), "aug_light1-wd_0.03-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.03"),
    "b32": "aug_medium1-wd_0.03-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.03",
    **dict.fromkeys(("b16", "b8"), "aug_medium1-wd_0.1-do_0.0-sd_0.0--imagenet2012-steps_20k-lr_0.01"),
    "l16": "aug_medium1-wd_0.1-do_0.1-sd_0.1--imagenet2012-steps_20k-lr_0.01",
}
_FLAX_GELU = {"act_layer": "gelu_tanh"}  # as SigLIP was trained; some of timm's architectures compute the exact one


@dataclass(frozen=True)
class Entry:
    """One model: its architecture, where its weights come from, how images reach it, how it was taught."""

    name: str
    architecture: str  # timm architecture name
    teaching: str  # key of vitscope.core.teachings
    title: str
    hub: str | None = None  # Hugging Face repository with timm weights: timm/architecture.tag
    files: tuple[str, ...] = ()  # official file names that are recognised in the weights folder
    url: str | None = None  # where an official file is published
    normalisation: tuple[Triple, Triple] | None = None  # mean and std; None: as timm's config of the weights says
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of the architecture
    taught_on: tuple[str, bool] | None = None  # the images it learned from, and whether with labels
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


def _modern(teaching: str, taught_on: tuple[str, bool], name: str, timm_name: str, title: str, **more: Any) -> Entry:
    described: dict[str, Any] = {"hub": f"timm/{timm_name}", "taught_on": taught_on, "group": "modern", **more}
    return Entry(name, timm_name.partition(".")[0], teaching, title, **described)


def _dinov2(size: str, registers: bool) -> Entry:
    short, plus = f"{size[0]}14", "reg4_" if registers else ""
    file = f"dinov2_vit{short}_{plus}pretrain.pth"
    return _modern(
        "self-distillation",
        ("LVD-142M", False),
        f"dinov2-{'reg-' if registers else ''}{short}",
        f"vit_{size}_patch14_{plus}dinov2.lvd142m",
        f"DINOv2 {size[0].upper()}/14{' + registers' if registers else ''}",
        files=(file,),
        url=f"{_DINOV2_URL}/dinov2_vit{short}/{file}",
        options={"img_size": 518},
    )


def _dinov3(size: str, short: str, digest: str) -> Entry:
    return _modern(
        "self-distillation",
        ("LVD-1689M", False),
        f"dinov3-{short}",
        f"vit_{size}_patch16_dinov3.lvd1689m",
        f"DINOv3 {short[0].upper()}{'+' if short.endswith('plus') else ''}/16",
        files=(f"dinov3_vit{short}_pretrain_lvd1689m-{digest}.pth",),
        url=_DINOV3_URL,
    )


def _siglip2(size: str, pixels: int) -> Entry:
    file = f"siglip2_{size[0]}16_{pixels}.npz"
    return _modern(
        "image-text",
        ("WebLI", False),
        f"siglip2-{size[0]}16",
        f"vit_{size}_patch16_siglip_{pixels}.v2_webli",
        f"SigLIP 2 {size[0].upper()}/16",
        files=(file,),
        url=f"{_SIGLIP_URL}/{file}",
        options=_FLAX_GELU,
    )


def _eva02(size: str, images: str, tag: str) -> Entry:
    # Masked patches of these images, as features of EVA-CLIP, which was itself taught with captions.
    file = f"eva02_{size[0].upper()}_pt_{'in21k' if tag == 'in22k' else tag}_p14.pt"
    name, title = f"eva02-{size[0]}14", f"EVA-02 {size[0].upper()}/14"
    timm_name = f"eva02_{size}_patch14_224.mim_{tag}"
    return _modern("masked-features", (images, False), name, timm_name, title, files=(file,), url=_EVA02_URL)


def _pe(size: str, patch: int, pixels: int) -> Entry:
    short = f"{size[0]}{patch}"
    file = f"PE-Core-{short.upper()}-{pixels}"
    return _modern(
        "image-text",
        ("5.4 billion images with captions", False),
        f"pe-{short}",
        f"vit_pe_core_{size}_patch{patch}_{pixels}.fb",
        f"PE {size[0].upper()}/{patch}",
        files=(f"{file}.pt",),
        url=f"https://huggingface.co/facebook/{file}",
    )


_autoregressive = partial(_modern, "autoregressive", ("DFN, COYO and HQITP with captions", False))
_deit = partial(_modern, "labels", ("ImageNet-1k", True))
_deit3 = partial(_modern, "labels", ("ImageNet-21k, then ImageNet-1k", True))

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
        *(_dinov2(size, registers) for registers in (False, True) for size in ("small", "base", "large")),
        _dinov3("small", "s16", "08c60483"),
        _dinov3("base", "b16", "73cec8be"),
        _dinov3("large", "l16", "8aa4cbdd"),
        _dinov3("huge_plus", "h16plus", "7c1da9a5"),
        _siglip2("base", 224),
        _siglip2("large", 256),
        _modern(
            *("image-text", ("WebLI", False), "siglip-b16", "vit_base_patch16_siglip_224.webli", "SigLIP B/16"),
            options=_FLAX_GELU,
        ),
        _pe("base", 16, 224),
        _pe("large", 14, 336),
        _autoregressive("aimv2-l14", "aimv2_large_patch14_224.apple_pt", "AIMv2 L/14"),
        _autoregressive("aimv2-h14", "aimv2_huge_patch14_224.apple_pt", "AIMv2 H/14"),
        _eva02("small", "ImageNet-21k", "in22k"),
        _eva02("base", "ImageNet-21k", "in22k"),
        _eva02("large", "Merged-38M", "m38m"),
        _modern(
            *("predictive", ("ImageNet-1k", False), "ijepa-h14", "vit_huge_patch14_gap_224.in1k_ijepa", "I-JEPA H/14"),
            hub=None,  # timm knows the official file only
            files=("IN1K-vit.h.14-300e.pth.tar",),
            url="https://dl.fbaipublicfiles.com/ijepa/IN1K-vit.h.14-300e.pth.tar",
            normalisation=IMAGENET,
        ),
        _deit("deit-b16", "deit_base_patch16_224.fb_in1k", "DeiT B/16"),
        _deit("deit-distilled-b16", "deit_base_distilled_patch16_224.fb_in1k", "DeiT B/16 distilled"),
        *(
            _deit3(
                f"deit3-{size[0]}16",
                f"deit3_{size}_patch16_224.fb_in22k_ft_in1k",
                f"DeiT-III {size[0].upper()}/16",
                files=(f"deit_3_{size}_224_21k.pth",),
                url=f"https://dl.fbaipublicfiles.com/deit/deit_3_{size}_224_21k.pth",
            )
            for size in ("small", "base", "large")
        ),
    )
}
