"""What names stand for: the catalogue, timm's names, the cards of the zoo; and networks built from them, untrained."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.reading import reason
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.card import ModelCard, read_card
from vitscope.models.catalogue import CATALOGUE, Entry
from vitscope.models.options import check_input_size, shape_options

ZOO = Path(__file__).parent / "zoo"
Size = int | tuple[int, int] | None


def find_entry(name: str) -> Entry:
    """The catalogue entry of that name, or one made for a timm `arch.tag`."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    from vitscope._torchvision import timm  # it takes seconds: not to list what has a name

    architecture = name.partition(".")[0]
    if timm.is_model(architecture) and timm.models.is_model_pretrained(name):
        config = timm.get_pretrained_cfg(name)
        tagged = f"{architecture}.{config.tag}" if config and config.tag else name
        hub, url = f"timm/{tagged}", str(config.url or "") if config else ""
        if url and config and not config.hf_hub_id:  # timm knows only where the official file is
            return Entry(tagged, architecture, "other", tagged, files=(url.rpartition("/")[2],), url=url, group="timm")
        taught = next((entry.teaching for entry in CATALOGUE.values() if entry.hub == hub), "other")
        return Entry(tagged, architecture, taught, tagged, hub=hub, group="timm")
    near = difflib.get_close_matches(
        name[:60], [*CATALOGUE, *timm.list_models(module="vision_transformer")], n=3, cutoff=0.5
    )
    hint = f"did you mean {', '.join(near)}?" if near else "`vitscope models` lists what there is."
    raise VitscopeError(f"no model is called '{shorten(name)}', and there is no such file: {hint}")


def build(architecture: str, options: Mapping[str, Any], size: Size = None) -> tuple[nn.Module, Preprocessing]:
    """An untrained timm network (without classifier) and the preprocessing timm knows for `architecture[.tag]`."""
    from vitscope._torchvision import timm

    if not timm.is_model(architecture.partition(".")[0]):
        near = difflib.get_close_matches(architecture[:60], timm.list_models(), n=3, cutoff=0.5)
        raise VitscopeError(
            f"timm has no architecture '{shorten(architecture)}'"
            + (f": did you mean {', '.join(near)}?" if near else "")
        )
    asked = {} if size is None else {"img_size": size if isinstance(size, int) else tuple(size)}
    options = shape_options(architecture, {**options, **asked})
    try:
        module = timm.create_model(architecture, pretrained=False, num_classes=0, **options)
    except (TypeError, RuntimeError, AssertionError, ValueError, ArithmeticError) as error:
        raise VitscopeError(f"timm cannot build '{architecture}' with {options}: {reason(error)}") from error
    config: Any = module.pretrained_cfg
    pixels = options.get("img_size", config.get("input_size", (3, 224, 224))[1:])
    pixels = (pixels, pixels) if isinstance(pixels, int) else tuple(pixels)
    if "img_size" in options:
        check_input_size(architecture, module, pixels)
    mean, std = config.get("mean", (0.5,) * 3), config.get("std", (0.5,) * 3)
    return module, Preprocessing(size=pixels, mean=tuple(mean), std=tuple(std))


def zoo_card(name: str) -> ModelCard:
    cards = {f"zoo/{path.stem}": path for path in sorted(ZOO.glob("*.toml"))}  # a name is no path: zoo/../x is none
    if name not in cards:
        raise VitscopeError(f"the zoo has no '{shorten(name, 60)}': there is {', '.join(cards) or 'none yet'}")
    return read_card(cards[name])
