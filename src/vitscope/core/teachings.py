"""The teachings, and the one colour and marker each has in every figure and page.

The study's six have the Okabe-Ito palette: distinct for the common kinds of colour blindness. Those that came after it
have colours that stay apart from these and from each other under the same kinds. Markers differ too, so that figures
survive a black-and-white printer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Teaching:
    key: str
    title: str
    kind: str  # explicit, contrastive, reconstruction, other, none; other also where a teaching mixes kinds
    colour: str
    marker: str  # matplotlib marker
    shape: str  # of the mark on the page
    words: str = ""  # what it is, where the title is not the name of a method of the study


# fmt: off
TEACHINGS: dict[str, Teaching] = {
    t.key: t
    for t in (
        Teaching("fs", "FS", "explicit", "#0072B2", "o", "circle"),
        Teaching("clip", "CLIP", "explicit", "#56B4E9", "s", "square"),
        Teaching("dino", "DINO", "contrastive", "#D55E00", "^", "triangle-up"),
        Teaching("moco", "MoCo-v3", "contrastive", "#E69F00", "v", "triangle-down"),
        Teaching("mae", "MAE", "reconstruction", "#009E73", "D", "diamond"),
        Teaching("beit", "BEiT", "reconstruction", "#CC79A7", "P", "cross"),
        Teaching("self-distillation", "Self-distillation", "other", "#CC1155", "<", "triangle-left",
            "a running average of itself, of whole images and of masked patches (DINOv2, DINOv3)"),
        Teaching("image-text", "Image-text", "explicit", "#8877EE", "h", "hexagon",
            "pairs of images and captions (SigLIP, SigLIP 2, Perception Encoder)"),
        Teaching("labels", "Labels", "explicit", "#708C00", "8", "octagon",
            "labelled images, by another recipe than the study's FS (DeiT, DeiT-III)"),
        Teaching("predictive", "Predictive", "other", "#AA5533", "*", "star",
            "features of masked regions, predicted from the rest (I-JEPA)"),
        Teaching("autoregressive", "Autoregressive", "other", "#DD7744", ">", "chevron",
            "the next patches and the caption, one after the other (AIMv2)"),
        Teaching("masked-features", "Masked features", "other", "#885577", "d", "thin-diamond",
            "masked patches, as features of a CLIP model (EVA-02)"),
        Teaching("none", "Untrained", "none", "#8A8A8A", "X", "stroke"),
        Teaching("other", "Other", "other", "#6A4C93", "p", "triangle-right"),
    )
}
# fmt: on
STUDIED = ("fs", "clip", "dino", "moco", "mae", "beit")  # the methods that the study's findings are about


def teaching(key: str) -> Teaching:
    """The teaching of that name; whatever is not known is `other`."""
    return TEACHINGS.get(key, TEACHINGS["other"])
