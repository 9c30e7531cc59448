"""Which timm architecture a converted checkpoint wants, from its shape."""

from __future__ import annotations

from vitscope._torchvision import timm
from vitscope.models.checkpoints.converted import Converted

SIZES = {
    (192, 12): "tiny",
    (384, 12): "small",
    (768, 12): "base",
    (1024, 24): "large",
    (1280, 32): "huge",
    (1408, 40): "giant",
    (1536, 40): "giant",
    (1664, 48): "gigantic",
}


def propose_architecture(converted: Converted) -> str | None:
    """The timm name that fits, or None if none of the usual sizes does."""
    shape = converted.shape
    size = SIZES.get((shape.width, shape.depth))
    if size is None or shape.patch is None or shape.patch[0] != shape.patch[1]:
        return None
    if not shape.positions and not shape.window:
        return None  # rotary positions leave no tensor to tell these families apart
    patch = shape.patch[0]
    pixels = shape.grid[0] * patch if shape.grid else 224
    stem = f"vit_{size}_patch{patch}"
    if shape.window:
        names = [f"beit_{size}_patch{patch}_{pixels}", f"beit_{size}_patch{patch}_224"]
    elif shape.layer_scale:
        kind = f"reg{shape.registers}_dinov2" if shape.registers else "dinov2"
        names = [f"{stem}_{kind}", f"deit3_{size}_patch{patch}_{pixels}"]
    elif shape.pre_norm:
        kind = "clip_quickgelu" if converted.hints.activation == "quick_gelu" else "clip"
        names = [f"{stem}_{kind}_{pixels}", f"{stem}_{kind}_224"]
    elif "attn_pool.latent" in converted.state:
        names = [f"{stem}_siglip_{pixels}", f"{stem}_siglip_224"]
    elif shape.distilled:
        names = [f"deit_{size}_distilled_patch{patch}_{pixels}", f"deit_{size}_distilled_patch{patch}_224"]
    elif shape.class_token:
        names = [f"{stem}_{pixels}", f"{stem}_224"]
    else:
        names = [f"{stem}_gap_{pixels}", f"{stem}_gap_224"]
    return next((name for name in names if timm.is_model(name)), None)
