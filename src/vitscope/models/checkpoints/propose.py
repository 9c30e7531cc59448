"""Which timm architecture a converted checkpoint wants, from its shape; and whether that is certain."""

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
AIMV2 = {(1024, 24): "large", (1536, 24): "huge", (2048, 24): "1b", (3072, 24): "3b"}


def propose_architecture(converted: Converted) -> str | None:
    """The timm name that fits, or None if none of the usual sizes does."""
    shape = converted.shape
    if shape.patch is None or shape.patch[0] != shape.patch[1]:
        return None
    pixels = shape.grid[0] * shape.patch[0] if shape.grid else 224
    return next((name for name in _names(converted, shape.patch[0], pixels) if timm.is_model(name)), None)


def _names(converted: Converted, patch: int, pixels: int) -> list[str]:
    shape, family = converted.shape, converted.family
    if family == "aimv2":
        return [f"aimv2_{AIMV2.get((shape.width, shape.depth))}_patch{patch}_{pixels}"]
    size = SIZES.get((shape.width, shape.depth))
    stem = f"vit_{size}_patch{patch}"
    if family == "dinov3":
        plus = "_plus" if "blocks.0.mlp.fc1_g.weight" in converted.state else ""
        return [f"vit_{size}{plus}_patch{patch}_dinov3{'_qkvb' if _biased(converted) else ''}"]
    if family == "pe":
        return [f"vit_pe_core_{size}_patch{patch}_{pixels}"]
    if family.startswith("eva02"):
        return [f"eva02_{size}_patch{patch}_{pixels}", f"eva02_{size}_patch{patch}_224"]
    if not shape.positions and not shape.window:
        return []  # rotary positions leave no tensor to tell these families apart
    if shape.window:
        return [f"beit_{size}_patch{patch}_{pixels}", f"beit_{size}_patch{patch}_224"]
    if shape.layer_scale:
        kind = f"reg{shape.registers}_dinov2" if shape.registers else "dinov2"
        return [f"{stem}_{kind}", f"deit3_{size}_patch{patch}_{pixels}"]
    if shape.pre_norm:
        kind = "clip_quickgelu" if converted.hints.activation == "quick_gelu" else "clip"
        return [f"{stem}_{kind}_{pixels}", f"{stem}_{kind}_224"]
    if "attn_pool.latent" in converted.state:
        return [f"{stem}_siglip_{pixels}", f"{stem}_siglip_224"]
    if shape.distilled:
        return [f"deit_{size}_distilled_patch{patch}_{pixels}", f"deit_{size}_distilled_patch{patch}_224"]
    if shape.class_token:
        return [f"{stem}_{pixels}", f"{stem}_224"]
    return [f"{stem}_gap_{pixels}", f"{stem}_gap_224"]


def _biased(converted: Converted) -> bool:
    """Whether queries or values have a bias that is not zero throughout."""
    ends = (".attn.q_bias", ".attn.v_bias")
    return any(value.is_meta or bool(value.any()) for key, value in converted.state.items() if key.endswith(ends))


def doubt(converted: Converted) -> str:
    """What a file leaves open although its shape fits an architecture; nothing if all that was published agrees.

    Heads leave no trace in a plain ViT's tensors. Their number is a convention, the same in all published families
    except at width 384, where MoCo-v3 has twelve instead of six.
    """
    if converted.hints.heads or converted.shape.heads:
        return ""
    if converted.family in ("vit", "mae") and converted.shape.width == 384 and not converted.shape.layer_scale:
        return "6 attention heads like most of its width or 12 like MoCo-v3's, which the file does not show"
    if converted.family == "clip" and converted.hints.activation is None:
        return "GELU, or QuickGELU like OpenAI's, which the file does not show"
    return ""
