"""`vitscope models`: what there is, which weights are present, how to get the others."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from vitscope.errors import VitscopeError
from vitscope.models.registry import listings
from vitscope.models.weights import weights_folder
from vitscope.teachings import teaching

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
        Show only names that match, such as 'dino*' or 'zoo/*'; timm's names are searched too.
    """
    # A plain name finds what starts with it.
    found = list(listings(pattern)) or list(listings(f"*{pattern}*"))
    if not found:
        raise VitscopeError(f"no model matches '{pattern}': `vitscope models` lists them all")
    console = Console()
    for group, title in GROUPS.items():
        members = [listing for listing in found if listing.group == group]
        if not members:
            continue
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("name", no_wrap=True, style="bold")
        table.add_column("teaching", no_wrap=True)
        table.add_column("weights", overflow="fold")
        for listing in members:
            detail = listing.how if listing.present or len(found) <= DETAILED else listing.source
            how = f"[green]present[/] {detail}" if listing.present else f"[yellow]missing[/] {detail}"
            colour = teaching(listing.teaching)
            table.add_row(listing.name, f"[{colour.colour}]{colour.title}[/]", how)
        console.print(table)
    if any(not listing.present for listing in found):
        console.print(
            "Missing weights: `vitscope models NAME` says how to get them; --download fetches timm/... names."
        )
    console.print(f"Official weight files are looked for in {weights_folder()} and ./weights.", style="dim")
