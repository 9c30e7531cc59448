"""`vitscope models`: what there is, which weights are present, how to get the others."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from vitscope.commands.zoo_cards import card_page, cards_table
from vitscope.core.errors import VitscopeError
from vitscope.core.teachings import teaching
from vitscope.models.listing import Listing, listings
from vitscope.models.registry import zoo_card
from vitscope.models.weights import weights_folder

GROUPS = {
    "zoo": "The zoo: one architecture, one world, six teachings (shipped)",
    "study": "The study's models",
    "more": "The study's extras",
    "modern": "Modern models",
    "timm": "From timm",
}

DETAILED = 3  # so few models are shown with the whole way to their weights


def models(pattern: str = "*", /) -> None:
    """List the models that have names, and where their weights are or how to get them.

    Any timm ViT can be named too (`vit_base_patch16_224.mae`), `random:ARCH` is an untrained network, `noise:ARCH` the
    study's noise baseline, and your own checkpoint is named by its file with --arch or by a model card (TOML).

    Parameters
    ----------
    pattern
        Show only names that match, such as 'dino*' or 'zoo/*'; timm's names are searched too. One network of the zoo
        alone, such as 'zoo/dino', is shown with its whole card.
    """
    # A plain name finds what starts with it.
    found = list(listings(pattern)) or list(listings(f"*{pattern}*"))
    if not found:
        raise VitscopeError(f"no model matches '{pattern}': `vitscope models` lists them all")
    console = Console(highlight=False)
    if len(found) == 1 and found[0].group == "zoo":
        console.print(card_page(zoo_card(found[0].name)))
        return
    for group, title in GROUPS.items():
        if members := [listing for listing in found if listing.group == group]:
            console.print(title, style="italic")
            if group == "zoo":
                console.print(cards_table([zoo_card(listing.name) for listing in members], console.width))
            else:
                console.print(_weights_table(members, detailed=len(found) <= DETAILED))
    if any(not listing.present for listing in found):
        console.print(
            "Missing weights: `vitscope models NAME` says how to get them; --download fetches timm/... names."
        )
    if any(listing.group != "zoo" for listing in found):
        console.print(f"Official weight files are looked for in {weights_folder()} and ./weights.", style="dim")


def _weights_table(members: list[Listing], *, detailed: bool) -> Table:
    """Where the weights of each model are, or how to get them. detailed: the whole way."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("teaching", no_wrap=True)
    table.add_column("weights", overflow="fold")
    for listing in members:
        detail = listing.how if listing.present or detailed else listing.source
        how = f"[green]present[/] {detail}" if listing.present else f"[yellow]missing[/] {detail}"
        colour = teaching(listing.teaching)
        table.add_row(listing.name, f"[{colour.colour}]{colour.title}[/]", how)
    return table
