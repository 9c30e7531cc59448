"""What happens to an image before a network sees it; it travels with the weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.digest import digest_of
from vitscope.data.corruption import LEVELS, Corruption, corrupt

Triple = tuple[float, float, float]

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

_RESAMPLE = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}


def covering(image: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """The size that an image (height, width) is resized to so that it covers `size`; what sticks out is truncated.

    >>> covering((375, 500), (224, 224))
    (224, 298)
    """
    height, width = size
    if image[1] * height <= image[0] * width:
        return int(width * image[0] / image[1]), width
    return height, int(height * image[1] / image[0])


@dataclass(frozen=True)
class Preprocessing:
    """Resize until the image covers `size` (height, width), crop the centre, normalise with mean and std.

    To the pixel as torchvision's Resize and CenterCrop do it, and with them timm and every official evaluation.
    """

    size: tuple[int, int]
    mean: Triple = IMAGENET[0]
    std: Triple = IMAGENET[1]
    interpolation: str = "bicubic"

    def __post_init__(self) -> None:
        if self.interpolation not in _RESAMPLE:
            raise ValueError(f"interpolation must be one of {', '.join(_RESAMPLE)}, not {self.interpolation}")

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        """The part of the geometry that masks share with images: resized, centre-cropped, size `self.size`.

        resample: the filter to use instead of the model's own (for masks: BOX, an exact area average).
        """
        height, width = self.size
        resized = covering((image.height, image.width), self.size)
        if resized != (image.height, image.width):
            own = _RESAMPLE[self.interpolation]
            image = image.resize((resized[1], resized[0]), own if resample is None else resample)
        top, left = round((resized[0] - height) / 2), round((resized[1] - width) / 2)
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


# -- masks as published ------------------------------------------------------------------------------------------------


def central(region: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The largest part of a mask (H, W) with the shape of `size`, from its middle; offsets are truncated."""
    height, width = region.shape
    if width * size[0] >= height * size[1]:
        width = int(height * size[1] / size[0])
    else:
        height = int(width * size[0] / size[1])
    top, left = (region.shape[0] - height) // 2, (region.shape[1] - width) // 2
    return region[top : top + height, left : left + width]


def cells_paper(region: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """A mask on the grid of tokens as published, by a bicubic filter in 8 bits: bool (H, W) -> uint8 (h, w).

    A cell beside the region may count a little, and a region of very few pixels may vanish.
    """
    mask = Image.fromarray(region.astype(np.uint8) * np.uint8(255))
    return np.asarray(mask.resize((grid[1], grid[0]), Image.Resampling.BICUBIC))


# -- other ways of an image to a network: whole and padded, with where its points come to lie; or shrunk first --------


@dataclass(frozen=True)
class Placement:
    """Where an image lies in a network's input, in pixels."""

    image: tuple[int, int]  # (height, width) of the image
    resized: tuple[int, int]  # (height, width) of the image in the input
    top: int
    left: int
    scale: float  # of the side that fills the input; rounding to whole pixels makes the other one's a little different

    @classmethod
    def of(cls, image: tuple[int, int], size: tuple[int, int]) -> Placement:
        """The largest that fits `size` (height, width), in the middle.

        >>> Placement.of((300, 400), (224, 224))
        Placement(image=(300, 400), resized=(168, 224), top=28, left=0, scale=0.56)
        """
        full = 1 if image[1] * size[0] >= image[0] * size[1] else 0  # the side that fills the input
        height, width = (max(round(size[full] * side / image[full]), 1) for side in image)
        scale = size[full] / image[full]
        return cls(image, (height, width), (size[0] - height) // 2, (size[1] - width) // 2, scale)

    @property
    def inside(self) -> tuple[int, int, int, int]:
        """Rows and columns of the input that show the image: top, bottom, left, right (ends exclusive)."""
        return self.top, self.top + self.resized[0], self.left, self.left + self.resized[1]

    def to_input(self, points: Tensor) -> Tensor:
        """Pixel positions (..., 2), x and y, of the image to those of the input. Pixels' centres stay centres."""
        scale, offset = self._map(points)
        return (points + 0.5) * scale - 0.5 + offset

    def to_image(self, points: Tensor) -> Tensor:
        """The way back."""
        scale, offset = self._map(points)
        return (points + 0.5 - offset) / scale - 0.5

    def to_input_paper(self, points: Tensor) -> Tensor:
        """As published: one scale for both sides, and corners, not centres, of pixels stay where they are."""
        return points * self.scale + points.new_tensor([self.left, self.top])

    def to_image_paper(self, points: Tensor) -> Tensor:
        """The way back: distances are those in the input, all divided by one number."""
        return (points - points.new_tensor([self.left, self.top])) / self.scale

    def _map(self, like: Tensor) -> tuple[Tensor, Tensor]:
        scale = [self.resized[1] / self.image[1], self.resized[0] / self.image[0]]
        return like.new_tensor(scale), like.new_tensor([self.left, self.top])


@dataclass(frozen=True)
class PaddedPreprocessing(Preprocessing):
    """The whole image, padded with the mean colour, which the network sees as zero, or with black."""

    padding: str = "mean"  # or "black"

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        place = Placement.of((image.height, image.width), self.size)
        own = _RESAMPLE[self.interpolation]
        resized = image.resize((place.resized[1], place.resized[0]), own if resample is None else resample)
        colour = tuple(round(255 * channel) for channel in self.mean)
        filled = Image.new(image.mode, (self.size[1], self.size[0]), colour if self._visible(image) else 0)
        filled.paste(resized, (place.left, place.top))
        return filled

    def _visible(self, image: Image.Image) -> bool:
        return self.padding == "mean" and image.mode == "RGB"


@dataclass(frozen=True)
class ShrunkPreprocessing(Preprocessing):
    """As published for retrieval: the long side is shrunk to the input size, then what the network needs enlarged."""

    first: str = "long side shrunk"  # tells its digest from that of the model's own

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        small = image.copy()
        small.thumbnail((self.size[1], self.size[0]), Image.Resampling.LANCZOS)
        return super().geometry(small, resample)


GEOMETRIES = ("crop", "padded", "padded black", "shrunk")  # or "crop, CORRUPTION STRENGTH"


@dataclass(frozen=True)
class CorruptedPreprocessing(Preprocessing):
    """The model's own geometry, and then a corruption, seeded by the pixels it falls on: see `corruption.py`."""

    corruption: Corruption = "noise"
    strength: int = 1

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        return corrupt(super().geometry(image, resample), self.corruption, self.strength)


def in_geometry(own: Preprocessing, geometry: str) -> Preprocessing:
    """A model's preprocessing with another geometry; `crop` is its own, `padded black` is the published one."""
    same = (own.size, own.mean, own.std)
    match geometry:
        case "crop":
            return own
        case "shrunk":
            return ShrunkPreprocessing(*same, own.interpolation)
        case "padded":
            return PaddedPreprocessing(*same, own.interpolation)
        case "padded black":
            return PaddedPreprocessing(*same, "lanczos", padding="black")
    if geometry.startswith("crop, "):
        name, strength = geometry.removeprefix("crop, ").split(" ")
        corruption = next(known for known in LEVELS if known == name)
        return CorruptedPreprocessing(*same, own.interpolation, corruption, int(strength))
    raise ValueError(f"a geometry is one of {', '.join(GEOMETRIES)}, not {geometry}")
