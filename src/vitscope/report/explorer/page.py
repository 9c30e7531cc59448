"""The explorer's page: one HTML document that draws from a server, from itself, or from networks that it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vitscope.attention.kinds import KINDS
from vitscope.core.teachings import teaching
from vitscope.models.spec import Spec
from vitscope.report.explorer.choice import load_call
from vitscope.report.explorer.gallery import FIRST, MENAGERIE
from vitscope.report.explorer.session import Session
from vitscope.report.page import write as report

HERE = Path(__file__).parent
STYLES = ("layout", "controls", "panels", "sections")
SCRIPTS = (  # in the order in which they are read; they share one scope
    "state", "safetensors", "trace", "components", "values", "paint", "vit", "resample", "network", "aside", "source",
    "panels", "strip", "atlas", "second", "neighbours", "images", "controls", "save", "explorer",
)  # fmt: skip


def model_data(specs: Sequence[Spec], calls: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """What the page has to know of each model before anything is computed. calls: Python that loads it, by title."""
    found = []
    for spec in specs:
        shape, how = spec.shape, teaching(spec.teaching)
        found.append(
            {
                "name": spec.name,
                "title": spec.title,
                "teaching": how.key,
                "mark": how.shape,
                "depth": shape.depth,
                "heads": shape.heads,
                "width": shape.width,
                "grid": list(shape.layout.grid),
                "prefix": shape.layout.prefix,
                "hasCls": shape.layout.has_cls,
                "size": list(spec.preprocessing.size),
                "parameters": shape.parameters,
                "load": (calls or {}).get(spec.title) or load_call(spec.name.partition("#")[0], seed=spec.seed),
            }
        )
    return found


def live_page(session: Session) -> tuple[str, str]:
    """The page of a running server, and its Content-Security-Policy."""
    boot = {
        "source": "server",
        "models": model_data(session.models, session.calls),
        "proposals": session.choice.proposals(),
        "gallery": session.gallery.ids,
        "menagerie": session.gallery.origin == MENAGERIE,
        "classes": list(session.gallery.categories),
        "study": session.study,
        "given": session.given,
        "first": [f"g{i}" for i in FIRST]
        if session.gallery.origin == MENAGERIE and len(session.gallery) > FIRST[1]
        else None,
        "kinds": list(KINDS),
    }
    assets = _assets(images="'self' data: blob:", connect="'self'")
    return render(boot, assets), f"{assets.policy}; frame-ancestors 'none'"


def file_page(boot: dict[str, Any], blocks: dict[str, str]) -> str:
    """A page that holds everything it shows. blocks: binary data by name, base64."""
    return render({**boot, "kinds": list(KINDS)}, _assets(images="data: blob:", connect="'none'"), blocks)


def render(boot: dict[str, Any], assets: report.Assets, blocks: dict[str, str] | None = None) -> str:
    template = _templates().get_template("explorer.html.j2")
    return template.render(
        boot=Markup(report.as_json(boot)),
        source=boot["source"],
        blocks=blocks or {},
        style=Markup(assets.style),
        script=Markup(assets.script),
        policy=assets.policy,
    )


@cache
def _assets(images: str, connect: str) -> report.Assets:
    ours = ("colours", "type", "bar", "tooltip", "pickers", "swatch")
    style = report.read_assets([(report.HERE, ours), (HERE, STYLES)], "css")
    script = report.read_assets([(report.HERE, ("dom", "colours", "tooltip")), (HERE, SCRIPTS)], "js")
    return report.Assets(f"{report.fixed_colours()}\n{style}", report.in_one_scope(script), images, connect, "blob:")


@cache
def _templates() -> Environment:
    folders = [HERE, report.HERE / "templates"]
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
