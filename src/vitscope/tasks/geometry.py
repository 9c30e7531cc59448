"""Other ways of a picture to a network: whole and padded, with where its points come to lie; or shrunk first."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image
from torch import Tensor

from vitscope.models.preprocessing import Preprocessing


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in a network's input, in pixels."""

    picture: tuple[int, int]  # (height, width) of the picture
    resized: tuple[int, int]  # (height, width) of the picture in the input
    top: int
    left: int

    @classmethod
    def of(cls, picture: tuple[int, int], size: tuple[int, int]) -> Placement:
        """The largest that fits `size` (height, width), in the middle.

        >>> Placement.of((300, 400), (224, 224))
        Placement(picture=(300, 400), resized=(168, 224), top=28, left=0)
        """
        scale = min(size[0] / picture[0], size[1] / picture[1])
        height, width = (max(min(round(side * scale), most), 1) for side, most in zip(picture, size, strict=True))
        return cls(picture, (height, width), (size[0] - height) // 2, (size[1] - width) // 2)

    @property
    def inside(self) -> tuple[int, int, int, int]:
        """Rows and columns of the input that show the picture: top, bottom, left, right (ends exclusive)."""
        return self.top, self.top + self.resized[0], self.left, self.left + self.resized[1]

    def to_input(self, points: Tensor) -> Tensor:
        """Pixel positions (..., 2), x and y, of the picture to those of the input. Pixels' centres stay centres."""
        scale, offset = self._map(points)
        return (points + 0.5) * scale - 0.5 + offset

    def to_picture(self, points: Tensor) -> Tensor:
        """The way back."""
        scale, offset = self._map(points)
        return (points + 0.5 - offset) / scale - 0.5

    def _map(self, like: Tensor) -> tuple[Tensor, Tensor]:
        scale = [self.resized[1] / self.picture[1], self.resized[0] / self.picture[0]]
        return like.new_tensor(scale), like.new_tensor([self.left, self.top])


@dataclass(frozen=True)
class PaddedPreprocessing(Preprocessing):
    """The whole picture, padded with black (`paper`) or with the mean colour, which the network sees as zero."""

    padding: str = "mean"  # or "black"

    @classmethod
    def like(cls, own: Preprocessing, protocol: str) -> PaddedPreprocessing:
        padding = "black" if protocol == "paper" else "mean"
        return cls(own.size, own.mean, own.std, own.interpolation, padding)

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        place = Placement.of((image.height, image.width), self.size)
        own = Image.Resampling[self.interpolation.upper()]
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

    @classmethod
    def like(cls, own: Preprocessing) -> ShrunkPreprocessing:
        return cls(own.size, own.mean, own.std, own.interpolation)

    def geometry(self, image: Image.Image, resample: Image.Resampling | None = None) -> Image.Image:
        small = image.copy()
        small.thumbnail((self.size[1], self.size[0]), Image.Resampling.LANCZOS)
        return super().geometry(small, resample)
