"""Everything that has a name: what `vitscope models` lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from vitscope.models.card import read_card
from vitscope.models.catalogue import CATALOGUE, Entry
from vitscope.models.registry import ZOO, find_entry
from vitscope.models.weights import find_weights, remedy


@dataclass(frozen=True)
class Listing:
    """One line of `vitscope models`."""

    name: str
    title: str
    teaching: str
    architecture: str
    group: str
    present: bool
    how: str  # where the weights are, or how to get them
    source: str  # the short form: hub name or file name


def listings(pattern: str = "*") -> Iterator[Listing]:
    """Everything with a name that matches the pattern: the zoo, the study's models, modern ones; then timm's."""
    for path in sorted(ZOO.glob("*.toml")):
        card = read_card(path)
        if fnmatchcase(card.name, pattern):
            title = card.title or card.name
            how = "shipped with vitscope"
            yield Listing(card.name, title, card.teaching, card.architecture, "zoo", True, how, how)
    for entry in CATALOGUE.values():
        if fnmatchcase(entry.name, pattern):
            yield _listing(entry)
    if pattern != "*":
        from vitscope._torchvision import timm

        for module in ("vision_transformer", "beit", "eva", "deit"):
            for name in timm.list_models(pattern, module=module, pretrained=True):
                yield _listing(find_entry(name))


def _listing(entry: Entry) -> Listing:
    found = find_weights(entry)
    return Listing(
        entry.name,
        entry.title,
        entry.teaching,
        entry.architecture,
        entry.group,
        present=found is not None,
        how=str(found) if found else remedy(entry),
        source=entry.hub or entry.files[0],
    )


def list_models(pattern: str = "*") -> list[str]:
    """Names of models that match a pattern, such as "zoo/*" or "dino*"."""
    return [listing.name for listing in listings(pattern)]
