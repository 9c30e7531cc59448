"""A model, described: one frozen `Spec` for whatever a user names, and one `resolve` that finds it.

Nothing is loaded before `load`: the digest, which decides whether work is done already, is made of the description and
of the bytes of the weights file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitscope._torchvision import timm
from vitscope.core.device import choose_device
from vitscope.core.digest import digest_of, digest_of_file
from vitscope.core.errors import BadCheckpoint, VitscopeError
from vitscope.core.reading import user_path
from vitscope.core.teachings import TEACHINGS
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.backbone import Backbone
from vitscope.models.card import ModelCard, TaughtOn, read_card
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.checkpoints import LoadReport, check_checkpoint, files_of, load_checkpoint
from vitscope.models.families import TAUGHT, as_trained, contradiction
from vitscope.models.folder import read_folder
from vitscope.models.infer import Inferred, infer_architecture
from vitscope.models.noise import NoiseTransformer
from vitscope.models.options import check_seed
from vitscope.models.registry import Size, build, find_entry, zoo_card
from vitscope.models.shape import ModelShape, shape_of
from vitscope.models.weights import get_weights

BASELINES = {"random": "Untrained", "noise": "Noise", "noise-paper": "Noise (published)"}


@dataclass(frozen=True)
class Spec:
    """Everything that decides what a model computes, and what people call it.

    weights: None for a baseline, which is made from its seed. baseline: "", or one of `BASELINES`.
    """

    name: str
    architecture: str
    preprocessing: Preprocessing
    title: str = ""
    teaching: str = "other"
    weights: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    size: Size = None  # of the input, if not the architecture's own
    baseline: str = ""
    seed: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    taught_on: TaughtOn | None = None  # what is known of the images that it learned from
    ignore_keys: tuple[str, ...] = ()  # patterns of keys in the file that are not part of the network
    note: str = ""  # how it came to be described so, where nobody said it

    @cached_property
    def digest(self) -> str:
        """What decides the numbers: the weights' bytes and all that shapes the network; names and places aside."""
        known: dict[str, Any] = {
            "architecture": self.architecture,
            "options": dict(self.options),
            "size": self.size,
            "preprocessing": self.preprocessing.digest,
            "timm": timm.__version__,
        }
        if self.ignore_keys:  # of two networks in a file they leave one
            known["ignore_keys"] = self.ignore_keys
        if self.weights is not None:
            return digest_of(known | {"weights": self.weights_digest})
        return digest_of(known | {"baseline": self.baseline, "seed": self.seed, "torch": torch.__version__})

    @property
    def weights_digest(self) -> str:
        """Of the weights file, or of its parts; of a baseline, how it is made."""
        if self.weights is None:
            return f"{self.baseline}#{self.seed}"
        digests = [_digest_now(file) for file in files_of(self.weights)]
        return digests[0] if len(digests) == 1 else digest_of(digests)

    @cached_property
    def shape(self) -> ModelShape:
        """Found on a network without memory (torch's meta device)."""
        with torch.device("meta"):
            module, _ = build(self.architecture, self.options, self.size)
        return shape_of(module, self.name, self.preprocessing.size)

    def check(self) -> str:
        """Make sure that the weights fit, names and shapes, before long work starts; returns the format's family."""
        return self._checked[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its results must know about where its weights and its description came from."""
        return self._checked[1]

    @cached_property
    def _checked(self) -> tuple[str, tuple[str, ...]]:
        if self.weights is None:
            return "", ()
        with torch.device("meta"):
            module, _ = build(self.architecture, self.options, self.size)
        report = check_checkpoint(module, self.weights, self.ignore_keys)
        return report.family, self._told(report)

    def _told(self, report: LoadReport) -> tuple[str, ...]:
        known = self.name in CATALOGUE  # its entry says what the file alone does not
        told = (
            self.note,
            "" if known else report.note,
            contradiction(report.family, self.preprocessing, self.teaching),
            report.ignored,
        )
        return tuple(f"{self.title}: {note}" for note in told if note)

    def load(self, device: str | torch.device | None = None) -> Backbone:
        """The network with its weights; missing or foreign weights are an error, never a random network."""
        chosen = choose_device(device)
        notes: tuple[str, ...] = ()
        if self.weights is None:
            module, origin = self._untrained(), f"seed {self.seed}"
        else:
            module, _ = build(self.architecture, self.options, self.size)
            report = load_checkpoint(module, self.weights, self.ignore_keys)
            notes, origin = self._told(report), str(self.weights)
        return Backbone(
            self.name,
            module,
            self.preprocessing,
            self.teaching,
            self.title or self.name,
            origin=origin,
            provenance=dict(self.provenance),
            device=chosen,
            notes=notes,
        )

    def _untrained(self) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            module, _ = build(self.architecture, self.options, self.size)
        if self.baseline == "random":
            return module
        if not hasattr(module, "blocks") or not hasattr(module, "cls_token"):
            raise BadCheckpoint(f"'{self.architecture}' is not a plain ViT: the noise baseline cannot take its shape")
        return NoiseTransformer(module, published=self.baseline == "noise-paper", seed=self.seed)


def _digest_now(path: Path) -> str:
    status = path.stat()
    return _file_digest(path, status.st_size, status.st_mtime_ns)


@cache
def _file_digest(path: Path, _size: int, _modified: int) -> str:
    return digest_of_file(path)


@dataclass(frozen=True)
class LoadedSpec(Spec):
    """A network that is in memory already, such as one in training: its digest is that of its parameters."""

    backbone: Backbone | None = None

    @cached_property
    def digest(self) -> str:
        assert self.backbone is not None
        return digest_of([self.backbone.weights_digest, self.preprocessing.digest, str(self.backbone.module)])

    @property
    def weights_digest(self) -> str:
        assert self.backbone is not None
        return self.backbone.weights_digest

    @property
    def notes(self) -> tuple[str, ...]:
        assert self.backbone is not None
        return self.backbone.notes

    @cached_property
    def shape(self) -> ModelShape:
        assert self.backbone is not None
        return self.backbone.shape

    def load(self, device: str | torch.device | None = None) -> Backbone:
        assert self.backbone is not None
        return self.backbone


Named = str | Path | ModelCard | Backbone | Spec


def resolve(
    model: Named,
    *,
    arch: str | None = None,
    size: Size = None,
    seed: int = 0,
    download: bool = False,
    root: Path | None = None,
    title: str | None = None,
    teaching: str | None = None,
    ignore_keys: Sequence[str] = (),
) -> Spec:
    """What a name stands for; the one place where names are parsed.

    model: a name (`vitscope models` lists them), any timm ViT `arch.tag`, `random:<name>` (untrained, seeded),
        `noise:<name>`, a model card (`*.toml`), a weights file (with `arch` where its tensors leave a choice), a folder
        that `save_pretrained` wrote, or a network in memory.
    size: input size, (height, width) or one number, if not the model's own; position embeddings are resampled.
    download: fetch missing weights from the hub. Without it nothing is ever fetched.
    root: the folder of official weights (in `weights/`) and datasets, if not $VITSCOPE_DATA.
    title, teaching: instead of those that the model comes with.
    ignore_keys: patterns, such as "head2.*", of keys of a weights file or folder that are not part of the network.
    """
    spec = _resolve(model, arch, size, seed, download, root, tuple(ignore_keys))
    if teaching is not None and teaching not in TEACHINGS:
        raise VitscopeError(f"{spec.name}: teaching '{teaching}' is not one of {', '.join(TEACHINGS)}")
    return replace(spec, title=title or spec.title or spec.name, teaching=teaching or spec.teaching)


def _resolve(
    model: Named, arch: str | None, size: Size, seed: int, download: bool, root: Path | None, ignore: tuple[str, ...]
) -> Spec:
    if isinstance(model, Spec):
        return model
    if isinstance(model, Backbone):
        known: dict[str, Any] = {"title": model.title, "teaching": model.teaching, "provenance": model.provenance}
        return LoadedSpec(model.name, type(model.module).__name__, model.preprocessing, backbone=model, **known)
    if isinstance(model, ModelCard):
        return _from_card(model, size)
    text = str(model)
    kind, _, shaped = text.partition(":")
    if kind in BASELINES and shaped:
        return _baseline(kind, shaped, size, seed)
    if text.startswith("zoo/"):
        return _from_card(zoo_card(text), size)
    path = user_path(text)
    if text.endswith(".toml"):
        return _from_card(read_card(path), size)
    if path.is_dir() and arch is None:
        return _from_folder(path, size, ignore)
    if isinstance(model, Path) or arch is not None or path.is_file():
        return _from_file(path, arch, size, ignore)
    entry = find_entry(text)
    tag = entry.hub.partition(".")[2] if entry.hub else ""
    architecture = f"{entry.architecture}.{tag}" if tag else entry.architecture
    with torch.device("meta"):
        module, preprocessing = build(architecture, entry.options, size)
    shape_of(module, entry.name, preprocessing.size)  # what is no ViT is told before a download is suggested
    weights = get_weights(entry, download=download, root=root)
    if entry.normalisation:
        preprocessing = Preprocessing(preprocessing.size, *entry.normalisation)
    described: dict[str, Any] = {"options": dict(entry.options), "size": size, "weights": weights}
    if entry.taught_on:
        described["taught_on"] = TaughtOn(dataset=entry.taught_on[0], labels=entry.taught_on[1])
    return Spec(entry.name, architecture, preprocessing, entry.title, entry.teaching, **described)


def _default_preprocessing(architecture: str, options: Mapping[str, Any], size: Size) -> Preprocessing:
    with torch.device("meta"):
        return build(architecture, options, size)[1]


def _from_file(path: Path, arch: str | None, size: Size, ignore: tuple[str, ...]) -> Spec:
    if path.is_dir():
        path = read_folder(path).weights
    elif not path.is_file():
        raise VitscopeError(f"there is no weights file {path}")
    found = Inferred(arch) if arch is not None else infer_architecture(path, ignore)
    preprocessing = _default_preprocessing(found.architecture, found.options, size)
    described: dict[str, Any] = {"weights": path, "options": found.options, "size": size, "note": found.note}
    spec = Spec(path.stem, found.architecture, preprocessing, path.name, ignore_keys=ignore, **described)
    return _as_trained(spec, spec.check())


def _from_folder(folder: Path, size: Size, ignore: tuple[str, ...]) -> Spec:
    found = read_folder(folder)
    preprocessing = _default_preprocessing(found.architecture, found.options, size)
    described: dict[str, Any] = {"weights": found.weights, "options": found.options, "size": size}
    name = folder.resolve().name
    spec = Spec(name, found.architecture, preprocessing, name, ignore_keys=ignore, **described)
    spec = _as_trained(spec, spec.check())
    return replace(spec, preprocessing=found.normalised(spec.preprocessing))


def _as_trained(spec: Spec, family: str) -> Spec:
    """What is known of a recognised format comes with it: teaching, normalisation, activation."""
    options = dict(spec.options)
    if family == "siglip" and spec.architecture.startswith("vit_"):
        options.setdefault("act_layer", "gelu_tanh")  # Flax's GELU; some of timm's architectures compute the exact one
    teaching, preprocessing = TAUGHT.get(family, spec.teaching), as_trained(spec.preprocessing, family)
    return replace(spec, preprocessing=preprocessing, teaching=teaching, options=options)


def _from_card(card: ModelCard, size: Size) -> Spec:
    if not card.weights.is_file():
        raise VitscopeError(f"model card '{card.name}': its weights file {card.weights} does not exist")
    preprocessing, size = _card_preprocessing(card, size)
    spec = Spec(
        card.name,
        card.architecture,
        preprocessing,
        card.title or card.name,
        card.teaching,
        weights=card.weights,
        options=dict(card.options),
        size=size,
        provenance=dict(card.provenance),
        taught_on=card.taught_on,
        ignore_keys=card.ignore_keys,
    )
    said = card.preprocessing.mean or card.preprocessing.std
    return spec if said else replace(_as_trained(spec, spec.check()), teaching=card.teaching)


def _card_preprocessing(card: ModelCard, size: Size) -> tuple[Preprocessing, Size]:
    """A card may say another input size than its architecture has: the network is then built for it."""
    default, wanted = _default_preprocessing(card.architecture, card.options, size), card.preprocessing
    preprocessing = Preprocessing(
        size=default.size if size is not None else wanted.size or default.size,
        mean=wanted.mean or default.mean,
        std=wanted.std or default.std,
        interpolation=wanted.interpolation or default.interpolation,
    )
    return preprocessing, size if preprocessing.size == default.size else preprocessing.size


def _baseline(kind: str, named: str, size: Size, seed: int) -> Spec:
    """The untrained network, or noise, in the shape (and with the preprocessing) of whatever is named."""
    check_seed(seed)
    options: Mapping[str, Any] = {}
    architecture = named
    if named.startswith("zoo/") or named.endswith(".toml"):
        card = zoo_card(named) if named.startswith("zoo/") else read_card(user_path(named))
        architecture, options = card.architecture, dict(card.options)
        preprocessing, size = _card_preprocessing(card, size)
    elif named in CATALOGUE:
        entry = CATALOGUE[named]
        architecture, options = entry.architecture, dict(entry.options)
        preprocessing = _default_preprocessing(architecture, options, size)
        if entry.normalisation:
            preprocessing = Preprocessing(preprocessing.size, *entry.normalisation)
    elif user_path(named).is_dir():
        folder = read_folder(user_path(named))
        architecture, options = folder.architecture, folder.options
        preprocessing = folder.normalised(_default_preprocessing(architecture, options, size))
    else:
        preprocessing = _default_preprocessing(architecture, options, size)
    name = f"{kind}:{named}" + (f"#{seed}" if seed else "")
    shaped = Path(named).stem if named.endswith(".toml") else Path(named).name if Path(named).is_dir() else named
    return Spec(
        name,
        architecture,
        preprocessing,
        f"{BASELINES[kind]} {shaped}",
        "none",
        options=options,
        size=size,
        baseline=kind,
        seed=seed,
    )


def load_model(model: Named, *, device: str | torch.device | None = None, **options: Any) -> Backbone:
    """Load a model: `load_model("zoo/dino").trace(images, observers)`. options: as `resolve` has them."""
    return resolve(model, **options).load(device)
