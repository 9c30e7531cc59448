"""What happens to a picture before a network sees it; it travels with the weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from PIL import Image
from torch import Tensor

from vitscope.digest import digest_of

Triple = tuple[float, float, float]

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

_RESAMPLE = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "nearest": Image.Resampling.NEAREST,
}


@dataclass(frozen=True)
class Preprocessing:
    """Resize until the picture covers `size` (height, width), crop the centre, normalise with mean and std."""

    size: tuple[int, int]
    mean: Triple = IMAGENET[0]
    std: Triple = IMAGENET[1]
    interpolation: str = "bicubic"

    def __post_init__(self) -> None:
        if self.interpolation not in _RESAMPLE:
            raise ValueError(f"interpolation must be one of {', '.join(_RESAMPLE)}, not {self.interpolation}")

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        """The part of the geometry that masks share with pictures: resized, centre-cropped, size `self.size`.

        resample: the filter to use instead of the model's own (for masks: BOX, an exact area average).
        """
        height, width = self.size
        scale = max(height / image.height, width / image.width)
        resized = (max(width, round(image.width * scale)), max(height, round(image.height * scale)))
        if resized != image.size:
            image = image.resize(resized, _RESAMPLE[self.interpolation] if resample is None else resample)
        left, top = (resized[0] - width) // 2, (resized[1] - height) // 2
        return image.crop((left, top, left + width, top + height))

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 (B, 3, h, w), or float in [0, 1], to what the network was trained on, in float32."""
        mean = torch.tensor(self.mean, device=images.device).view(3, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(3, 1, 1)
        scale = 255.0 if images.dtype == torch.uint8 else 1.0
        return (images.float() - mean * scale) / (std * scale)

    @property
    def digest(self) -> str:
        return digest_of(asdict(self))
