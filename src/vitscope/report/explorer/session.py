"""What one explorer knows: models, images, and one traced forward pass for each pair, all within bounds of memory.

Methods block and belong on the worker's thread, except those that say otherwise.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from PIL import Image
from safetensors.torch import load

from vitscope.core.errors import UnsupportedModel, VitscopeError
from vitscope.data.decode import decode_bytes
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.samples import SampleList
from vitscope.models.backbone import Backbone
from vitscope.models.kept import trace_image
from vitscope.models.spec import Spec
from vitscope.report.explorer.arrays import packed, packed_size, packed_trace
from vitscope.report.explorer.bank import Bank
from vitscope.report.explorer.choice import MOST_MODELS, Choice, Refused
from vitscope.report.explorer.gallery import rolled

MOST_BYTES = 32 << 20  # of an uploaded file
MOST_PIXELS = 40_000_000  # of an uploaded image: 120 MB as RGB
LARGEST_TRACE = 256 << 20
SMALL = 5_000_000  # parameters
SHOWN = 448  # pixels of the shorter side of an image on the page
THUMB = 96
NAME = re.compile(r"(g|m)([0-9]{1,9})|u([0-9a-f]{32})")

Thing = TypeVar("Thing")


class Unknown(VitscopeError):
    """There is no such image or model here."""


class NotYet(VitscopeError):
    """The model has not looked at the gallery yet, or what it saw was given up for other models."""


class Shelf(Generic[Thing]):
    """The things used last, up to a number of bytes. Safe to use from several threads."""

    def __init__(self, budget: int) -> None:
        self.budget, self.used = budget, 0
        self._things: OrderedDict[Hashable, tuple[int, Thing]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Thing | None:
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][1]

    def put(self, key: Hashable, thing: Thing, size: int) -> None:
        """Keep it, and let go of what was not used for longest; the newest always stays."""
        with self._lock:
            if key in self._things:
                self.used -= self._things.pop(key)[0]
            self._things[key] = (size, thing)
            self.used += size
            while self.used > self.budget and len(self._things) > 1:
                self.used -= self._things.popitem(last=False)[1][0]

    def __len__(self) -> int:
        return len(self._things)


@dataclass
class Session:
    """models: those there at the start; gallery: images beside the one looked at; root: nothing outside it is shown.

    memory: bytes for traces. Uploaded images have half as much, models half as much or 1 GB, banks of tokens as much,
    a quarter for each of four models.
    """

    models: Sequence[Spec]
    gallery: SampleList
    root: Path | None = None
    device: str = "auto"
    memory: int = 512 << 20
    study: dict[str, Any] = field(default_factory=dict)  # what a finished run says, by model title
    given: int = 0  # models that were asked for by name: the first ones
    choice: Choice = field(default_factory=Choice)  # what can be typed in
    calls: dict[str, str] = field(default_factory=dict)  # Python expressions that load models, by title

    def __post_init__(self) -> None:
        self.models = list(self.models)
        self._threads = torch.get_num_threads()
        self._backbones: Shelf[Backbone] = Shelf(max(self.memory // 2, 1 << 30))
        self._uploads: Shelf[Image.Image] = Shelf(self.memory // 2)
        self._traces: Shelf[bytes] = Shelf(self.memory)
        self._banks: Shelf[Bank] = Shelf(self.memory)

    # -- images ---------------------------------------------------------------------------------------------------

    def upload(self, data: bytes) -> str:
        """Decode a stranger's file and keep it in memory; returns its name. Any thread. Raises BadImage."""
        image = decode_bytes(data, "the image", most_pixels=MOST_PIXELS)
        name = f"u{hashlib.sha256(data).hexdigest()[:32]}"
        self._uploads.put(name, image, 3 * image.width * image.height)
        return name

    def image(self, name: str) -> Image.Image:
        """The image of a name: g7 of the gallery, m7 rolled in the menagerie, u... uploaded. Any thread."""
        found = NAME.fullmatch(name)
        if found is None:
            raise Unknown("there is no such image")
        kind, number = found.group(1), int(found.group(2) or 0)
        if kind == "m":
            return Image.fromarray(rolled("rolled", number).image)
        if kind == "g":
            if number >= len(self.gallery):
                raise Unknown("there is no such image in the folder")
            sample = self.gallery[number]
            if self.root is not None and not sample.path.resolve().is_relative_to(self.root.resolve()):
                raise Unknown("this image lies outside of the folder")
            return sample.load()
        upload = self._uploads.get(name)
        if upload is None:
            raise Unknown("this image was dropped into another session, or long ago: drop it in again")
        return upload

    def picture(self, name: str, model: int, *, small: bool = False) -> bytes:
        """What a model sees of an image, larger than it sees it: a JPEG. Any thread."""
        height, width = self.spec(model).preprocessing.size
        scale = (THUMB if small else SHOWN) / min(height, width)
        shown = Preprocessing((round(height * scale), round(width * scale)))
        buffer = io.BytesIO()
        shown.geometry(self.image(name)).save(buffer, format="JPEG", quality=80 if small else 92)
        return buffer.getvalue()

    # -- models ---------------------------------------------------------------------------------------------------

    def spec(self, model: int) -> Spec:
        if not 0 <= model < len(self.models):
            raise Unknown("there is no such model")
        return self.models[model]

    def add(self, text: str) -> int:
        """The number of the model that somebody typed in; one that is there already is not taken twice."""
        spec, call = self.choice.find(text)
        for number, other in enumerate(self.models):
            if replace(other, title="") == replace(spec, title=""):
                return number
        if len(self.models) >= MOST_MODELS:
            raise Refused(f"there are {MOST_MODELS} models already: start the explorer anew")
        titles = {other.title for other in self.models}
        ways = (spec.title, spec.name, *(f"{spec.title} ({i})" for i in range(2, MOST_MODELS + 2)))
        spec = replace(spec, title=next(title for title in ways if title not in titles))
        self.calls[spec.title] = call
        self.models = [*self.models, spec]
        return len(self.models) - 1

    def backbone(self, model: int) -> Backbone:
        """The network, loaded when it is first asked for, and ready to be used next.

        A small network is done sooner by one thread: several would wait for each other longer than they work.
        """
        spec = self.spec(model)
        found = self._backbones.get(model)
        if found is None:
            found = spec.load(self.device)
            self._backbones.put(model, found, 4 * found.shape.parameters)
        torch.set_num_threads(self._threads if found.shape.parameters > SMALL else 1)
        return found

    def trace(self, model: int, name: str, stop: Callable[[], bool] = lambda: False) -> bytes:
        """Attention and tokens of every block, packed (`arrays.packed_trace`)."""
        found = self._traces.get((model, name))
        if found is not None:
            return found
        backbone = self.backbone(model)
        size = packed_size(backbone.depth, backbone.heads, backbone.layout.tokens, backbone.width)
        if size > LARGEST_TRACE:
            raise UnsupportedModel(
                f"the attention of {backbone.title} takes {size >> 20} MB per image: start with a smaller --size"
            )
        found = packed_trace(trace_image(backbone, self.image(name), stop=stop))
        self._traces.put((model, name), found, len(found))
        return found

    # -- the gallery ----------------------------------------------------------------------------------------------

    def bank(self, model: int) -> Bank:
        """What the model made of the gallery so far."""
        found = self._banks.get(model)
        if found is None:
            backbone = self.backbone(model)
            found = Bank(backbone, self.gallery, self.memory // 4)
            size = 2 * backbone.depth * backbone.layout.tokens * backbone.width * found.planned
            self._banks.put(model, found, size)
        return found

    def neighbours(self, model: int, name: str, layer: int, patch: int) -> bytes:
        """Nearest patches and images of the gallery, packed."""
        tokens, layout = self._tokens(model, name, layer), self.backbone(model).layout
        if not 0 <= patch < layout.spatial:
            raise Unknown("there is no such patch")
        patches = tokens[layout.prefix :]
        summary = tokens[0] if layout.has_cls else patches.mean(0)
        return packed(self._complete(model).nearest(layer, patches[patch], summary, _place(name)))

    def segmentation(self, model: int, name: str) -> bytes:
        """Labels of all patches at all layers, (L, N), by the gallery's labelled ones, packed."""
        backbone = self.backbone(model)
        tokens = load(self.trace(model, name))["tokens"][:, backbone.layout.prefix :].float()  # (L, N, D)
        bank = self._complete(model)
        found = [bank.segment(layer, patches, _place(name)) for layer, patches in enumerate(tokens)]
        return packed({key: torch.stack([one[key] for one in found]) for key in ("labels", "share")})

    def _complete(self, model: int) -> Bank:
        bank = self.bank(model)
        if not bank.complete:
            raise NotYet("the model has not looked at the folder yet")
        return bank

    def _tokens(self, model: int, name: str, layer: int) -> torch.Tensor:
        tokens = load(self.trace(model, name))["tokens"]
        if not 0 <= layer < len(tokens):
            raise Unknown("there is no such layer")
        return tokens[layer].float()

    @property
    def used(self) -> dict[str, int]:
        """Bytes in use, by what they are used for. Any thread."""
        return {
            "models": self._backbones.used,
            "images": self._uploads.used,
            "traces": self._traces.used,
            "banks": self._banks.used,
        }


def _place(name: str) -> int | None:
    """The position of an image in the gallery, if it is one of it."""
    return int(name[1:]) if name.startswith("g") else None
