"""From a name to a Backbone: catalogue names, timm names, `random:`/`noise:` baselines, own files and model cards."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import timm
import torch
from torch import nn

from vitscope.device import choose_device
from vitscope.errors import BadCheckpoint, VitscopeError
from vitscope.models.backbone import Backbone
from vitscope.models.card import ModelCard, read_card
from vitscope.models.catalogue import CATALOGUE, Entry
from vitscope.models.checkpoints import LoadReport, load_checkpoint
from vitscope.models.noise import NoiseTransformer
from vitscope.models.preprocessing import Preprocessing
from vitscope.models.weights import get_weights

ZOO = Path(__file__).parent / "zoo"
BASELINES = {"random": "Untrained", "noise": "Noise", "noise-paper": "Noise (published)"}
Size = int | tuple[int, int] | None


def load(
    model: str | Path | ModelCard,
    *,
    arch: str | None = None,
    size: Size = None,
    device: str | torch.device | None = None,
    seed: int = 0,
    download: bool = False,
) -> Backbone:
    """Load a model for examination.

    model: a name (`vitscope models` lists them), any timm ViT `arch.tag`, `random:<arch>` (untrained, seeded),
        `noise:<arch>`, a model card (`*.toml`), or a weights file together with `arch`.
    arch: timm architecture of a weights file.
    size: input size, (height, width) or one number, if not the model's own; position embeddings are resampled.
    download: fetch missing weights from the hub. Without it nothing is ever fetched, and missing weights are an
        error, never a random network.
    """
    chosen = choose_device(device)
    if isinstance(model, ModelCard):
        return _from_card(model, size, chosen)
    text = str(model)
    kind, _, architecture = text.partition(":")
    if kind in BASELINES and architecture:
        return _baseline(kind, architecture, size, chosen, seed)
    if text.startswith("zoo/"):
        return _from_card(zoo_card(text), size, chosen)
    if text.endswith(".toml"):
        return _from_card(read_card(Path(text)), size, chosen)
    if isinstance(model, Path) or arch is not None or Path(text).is_file():
        return _from_file(Path(text), arch, size, chosen)
    entry = find_entry(text)
    return _from_weights(entry, get_weights(entry, download=download), size, chosen)


def find_entry(name: str) -> Entry:
    """The catalogue entry of that name, or one made for a timm `arch.tag`."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    architecture = name.partition(".")[0]
    if timm.is_model(architecture) and timm.models.is_model_pretrained(name):
        config = timm.get_pretrained_cfg(name)
        tagged = f"{architecture}.{config.tag}" if config and config.tag else name
        return Entry(tagged, architecture, "other", tagged, hub=f"timm/{tagged}", group="timm")
    near = difflib.get_close_matches(
        name, [*CATALOGUE, *timm.list_models(module="vision_transformer")], n=3, cutoff=0.5
    )
    hint = f"did you mean {', '.join(near)}?" if near else "`vitscope models` lists what there is."
    raise VitscopeError(f"no model is called '{name}', and there is no such file: {hint}")


def build(architecture: str, options: Mapping[str, Any], size: Size = None) -> tuple[nn.Module, Preprocessing]:
    """An untrained timm network (without classifier) and the preprocessing timm knows for `architecture[.tag]`."""
    if not timm.is_model(architecture.partition(".")[0]):
        near = difflib.get_close_matches(architecture, timm.list_models(), n=3, cutoff=0.5)
        raise VitscopeError(
            f"timm has no architecture '{architecture}'" + (f": did you mean {', '.join(near)}?" if near else "")
        )
    options = dict(options)
    if size is not None:
        options["img_size"] = (size, size) if isinstance(size, int) else tuple(size)
    try:
        module = timm.create_model(architecture, pretrained=False, num_classes=0, **options)
    except (TypeError, RuntimeError, AssertionError, ValueError) as error:
        raise VitscopeError(f"timm cannot build '{architecture}' with {options}: {error}") from error
    config: Any = module.pretrained_cfg
    pixels = options.get("img_size", config.get("input_size", (3, 224, 224))[1:])
    pixels = (pixels, pixels) if isinstance(pixels, int) else tuple(pixels)
    mean, std = config.get("mean", (0.5,) * 3), config.get("std", (0.5,) * 3)
    return module, Preprocessing(size=pixels, mean=tuple(mean), std=tuple(std))


def _from_weights(entry: Entry, path: Path, size: Size, device: torch.device) -> Backbone:
    tag = entry.hub.partition(".")[2] if entry.hub else ""
    module, preprocessing = build(f"{entry.architecture}.{tag}" if tag else entry.architecture, entry.options, size)
    if entry.normalisation:
        preprocessing = Preprocessing(preprocessing.size, *entry.normalisation)
    report = load_checkpoint(module, path)
    return Backbone(
        entry.name,
        module,
        preprocessing,
        entry.teaching,
        entry.title,
        origin=str(path),
        device=device,
        notes=_notes(entry.title, report),
    )


def _from_file(path: Path, arch: str | None, size: Size, device: torch.device) -> Backbone:
    if arch is None:
        raise VitscopeError(f"{path} is a weights file: say its architecture too, such as --arch vit_small_patch16_224")
    if not path.is_file():
        raise VitscopeError(f"there is no weights file {path}")
    module, preprocessing = build(arch, {}, size)
    report = load_checkpoint(module, path)
    known = {"clip", "dino", "moco", "mae", "beit"}  # formats that tell the teaching; others are shared by several
    return Backbone(
        path.stem,
        module,
        preprocessing,
        report.family if report.family in known else "other",
        path.name,
        origin=str(path),
        device=device,
        notes=_notes(path.name, report),
    )


def _notes(title: str, report: LoadReport) -> tuple[str, ...]:
    return (f"{title}: {report.note}",) if report.note else ()


def zoo_card(name: str) -> ModelCard:
    path = ZOO / f"{name.removeprefix('zoo/')}.toml"
    if not path.is_file():
        there = ", ".join(f"zoo/{p.stem}" for p in sorted(ZOO.glob("*.toml"))) or "none yet"
        raise VitscopeError(f"the zoo has no '{name}': there is {there}")
    return read_card(path)


def _from_card(card: ModelCard, size: Size, device: torch.device) -> Backbone:
    if not card.weights.is_file():
        raise VitscopeError(f"model card '{card.name}': its weights file {card.weights} does not exist")
    module, default = build(card.architecture, card.options, size)
    wanted = card.preprocessing
    preprocessing = Preprocessing(
        size=default.size if size is not None else wanted.size or default.size,
        mean=wanted.mean or default.mean,
        std=wanted.std or default.std,
        interpolation=wanted.interpolation or default.interpolation,
    )
    if preprocessing.size != default.size and "img_size" in inspect.signature(type(module).__init__).parameters:
        module, _ = build(card.architecture, card.options, preprocessing.size)
    report = load_checkpoint(module, card.weights)
    return Backbone(
        card.name,
        module,
        preprocessing,
        card.teaching,
        card.title or card.name,
        origin=str(card.weights),
        provenance=dict(card.provenance),
        device=device,
        notes=_notes(card.name, report),
    )


def architecture_of(name: str) -> tuple[str, dict[str, Any]]:
    """The architecture and options that a baseline takes its shape from: any name, or a model card."""
    if name.startswith("zoo/") or name.endswith(".toml"):
        card = zoo_card(name) if name.startswith("zoo/") else read_card(Path(name))
        return card.architecture, dict(card.options)
    if name in CATALOGUE:
        return CATALOGUE[name].architecture, dict(CATALOGUE[name].options)
    return name, {}


def _baseline(kind: str, architecture: str, size: Size, device: torch.device, seed: int) -> Backbone:
    named = architecture
    architecture, options = architecture_of(architecture)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module, preprocessing = build(architecture, options, size)
    name = f"{kind}:{named}" + (f"#{seed}" if seed else "")
    title = f"{BASELINES[kind]} {named}"
    if kind != "random":
        check_shape = getattr(module, "blocks", None)
        if check_shape is None or not hasattr(module, "cls_token"):
            raise BadCheckpoint(f"'{architecture}' is not a plain ViT: the noise baseline cannot take its shape")
        module = NoiseTransformer(module, published=kind == "noise-paper", seed=seed)
    return Backbone(name, module, preprocessing, "none", title, origin=f"seed {seed}", device=device)
