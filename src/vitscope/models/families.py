"""What is known of a recognised checkpoint format beyond its tensors: how it was taught, and with which mean."""

from __future__ import annotations

from dataclasses import replace

from vitscope.data.preprocessing import CLIP, HALF, IMAGENET, Preprocessing

TAUGHT = {  # teachings of formats that tell them; the names of others are shared by several
    **{key: key for key in ("clip", "dino", "moco", "mae", "beit")},
    **dict.fromkeys(("dinov2", "dinov3"), "self-distillation"),
    **dict.fromkeys(("siglip", "pe"), "image-text"),
    "ijepa": "predictive",
    "aimv2": "autoregressive",
    "eva02": "masked-features",
}
TRAINED_WITH = {  # mean and std of formats that one family alone has, whatever the architecture's own are
    **dict.fromkeys(("dino", "ibot", "moco", "mae", "dinov2", "dinov3", "ijepa"), IMAGENET),
    **dict.fromkeys(("clip", "aimv2", "eva02", "eva02 tuned"), CLIP),
    **dict.fromkeys(("beit", "siglip", "pe", "augreg"), HALF),
}


def as_trained(preprocessing: Preprocessing, family: str) -> Preprocessing:
    """The preprocessing with the mean and std that a format was trained with."""
    mean, std = TRAINED_WITH.get(family, (preprocessing.mean, preprocessing.std))
    return replace(preprocessing, mean=mean, std=std)


def contradiction(family: str, preprocessing: Preprocessing, teaching: str) -> str:
    """What a recognised format says otherwise than whoever described the model; nothing if they agree."""
    trained = as_trained(preprocessing, family)
    if trained != preprocessing:
        return (
            f"{family} checkpoints were trained with mean {_numbers(trained.mean)} and std {_numbers(trained.std)}, "
            f"and this one is normalised with {_numbers(preprocessing.mean)} and {_numbers(preprocessing.std)}: "
            "correct its description if that is not meant"
        )
    if teaching not in (TAUGHT.get(family, teaching), "other"):
        return f"it is called {teaching}, but its file is a {family} checkpoint"
    return ""


def _numbers(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:.3g}" for value in values)
