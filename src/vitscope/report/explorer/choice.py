"""Models that can be typed into the page: names that vitscope knows, and files below folders named at the start.

Whoever types is let in by the token, but the text may also come out of a link: it never reaches another file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vitscope.core.errors import MissingWeights, VitscopeError, shorten
from vitscope.core.reading import path_inside
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.registry import ZOO, Size, find_entry
from vitscope.models.spec import BASELINES, Spec, resolve
from vitscope.models.weights import find_weights

LONGEST = 200  # characters of what is typed
MOST_MODELS = 64  # in one session
MOST_FILES = 300  # that are proposed
FILES = (".toml", ".safetensors", ".pth", ".pt", ".bin", ".npz")
NAME = re.compile(rf"(?:(?:{'|'.join(BASELINES)}):)?(zoo/[a-z0-9_-]+|[A-Za-z0-9_][A-Za-z0-9_.-]*)")
A_PATH = re.compile(r"(^|[\s'\"(=])(~|/|[A-Za-z]:\\)")


class Refused(VitscopeError):
    """What was typed is no model here; the words may be shown in the page."""


@dataclass(frozen=True)
class Choice:
    """folders: whose cards and weights may be typed in; arch: of weights without a card; the rest as in `resolve`."""

    folders: tuple[Path, ...] = ()
    arch: str | None = None
    size: Size = None
    seed: int = 0
    download: bool = False

    def find(self, text: str) -> tuple[Spec, str]:
        """The model that a text names, and the Python expression that loads it. Raises Refused."""
        text = text.strip()
        if not text or len(text) > LONGEST or not text.isprintable():
            raise Refused("type the name of a model: `vitscope models` lists them")
        file = self._file(text) if text.endswith(FILES) else None
        if file is None and (found := NAME.fullmatch(text)) is None:
            raise Refused(f"no model is called '{shorten(text, 60)}'")
        try:
            if file is None and text == found[1] and not text.startswith("zoo/"):  # type: ignore[index]
                find_entry(text)  # before anybody looks for a file of that name
            arch = self.arch if file is not None and file.suffix != ".toml" else None
            if file is not None and file.suffix != ".toml" and arch is None:
                raise Refused(f"{file.name} is a weights file: start with --arch, or write a model card beside it")
            known = {"size": self.size, "seed": self.seed, "download": self.download}
            spec = resolve(file or text, arch=arch, **known)  # type: ignore[arg-type]
            _ = spec.shape  # what is no ViT is told here
        except MissingWeights:
            raise Refused(
                f"the weights of {text} are not on this machine: start with `vitscope explore {text} --download`"
            ) from None
        except VitscopeError as error:
            if A_PATH.search(str(error)):
                raise  # the terminal says why
            raise Refused(str(error)) from None
        return spec, load_call(file.name if file else text, arch=arch, size=self.size, seed=self.seed)

    def _file(self, text: str) -> Path:
        """The file below one of the folders; links that lead out of it are not followed."""
        if not self.folders:
            raise Refused("files are found below folders that are named at the start: `vitscope explore FOLDER`")
        for folder in self.folders:
            try:
                path = path_inside(folder, text, source="the page").resolve()
            except (VitscopeError, OSError):
                continue
            if path.is_relative_to(folder.resolve()) and path.is_file():
                return path
        raise Refused(f"there is no file '{shorten(text, 60)}' below the folders that the explorer was started with")

    def proposals(self) -> list[str]:
        """What could be typed: cards and weights below the folders, the zoo, and names whose weights are here."""
        here = [name for name, entry in CATALOGUE.items() if find_weights(entry) is not None]
        zoo = [f"zoo/{path.stem}" for path in sorted(ZOO.glob("*.toml"))]
        untrained = [f"random:{name}" for name in ("zoo/dino", "vit_small_patch16_224", "vit_base_patch16_224")]
        return [*islice(self._files(), MOST_FILES), *here, *zoo, *untrained]

    def _files(self) -> Iterator[str]:
        for folder in self.folders:
            for path in sorted(islice(folder.rglob("*"), 20 * MOST_FILES)):
                if path.name.endswith(FILES[0] if self.arch is None else FILES) and path.is_file():
                    yield path.relative_to(folder).as_posix()


def load_call(name: str, *, arch: str | None = None, size: Size = None, seed: int = 0) -> str:
    """The Python expression that loads a model.

    >>> load_call("random:zoo/dino", seed=3)
    'vitscope.load_model("random:zoo/dino", seed=3)'
    """
    words = [json.dumps(name)]
    words += [f"arch={json.dumps(arch)}"] if arch else []
    words += [f"size={size}"] if size is not None else []
    words += [f"seed={seed}"] if seed and name.partition(":")[0] in BASELINES else []
    return f"vitscope.load_model({', '.join(words)})"
