"""Write a study as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vitscope.attention.kinds import KINDS
from vitscope.core.files import make_folder, write_atomically
from vitscope.core.teachings import TEACHINGS
from vitscope.findings.outcome import StudyOutcome
from vitscope.report.attention_figures import KIND_COLOURS
from vitscope.report.looks import on_dark, on_paper
from vitscope.report.page.models import model_colours
from vitscope.report.page.payload import Page, gather
from vitscope.report.page.share import ICON, share_picture

HERE = Path(__file__).parent
DARK_KINDS = {  # on a dark screen; what is everywhere must not shine
    "cls-bound": "#c9ccd6", "offset local": "#30c0c0", "strict local": "#8189ff", "axial local": "#cdb92a",
    "global": "#3d4353",
}  # fmt: skip
STYLES = (  # later ones take precedence
    "colours", "type", "frame", "bar", "tooltip", "figures", "take", "pickers", "charts", "swatch", "panels",
    "overview", "atlas", "tables", "print",
)  # fmt: skip
SCRIPTS = (  # in the order in which they are read; they share one scope
    "dom", "study", "colours", "selection", "tooltip", "marks", "axes", "lines", "cursor", "pickers", "take", "curves",
    "tasks",
    "maps", "kinds", "views", "atlas", "walk", "head", "heatmap", "similarity", "depth", "spaces", "answers",
    "legend", "page",
)  # fmt: skip


def write_page(outcome: StudyOutcome, path: Path, *, images: bool = True) -> Path:
    """Write the page and return its path. A page that was there is replaced when the new one is complete.

    Beside it lies a picture, for places where a link to the page is shared; the page itself does without. images: of
    answers, features, heads that matter and steps of training, which take most of the time; charts are always there.
    """
    page, picture = gather(outcome, images=images), path.with_suffix(".png")
    make_folder(path.parent)
    write_atomically(picture, lambda temporary: temporary.write_bytes(share_picture(page)))
    write_atomically(path, lambda temporary: temporary.write_text(render(page, picture.name), encoding="utf-8"))
    return path


def render(page: Page, share: str = "") -> str:
    """share: the picture that stands for the page where it is shared; none if it is not given."""
    assets = Assets(f"{model_colours(page.models)}\n{_style()}", _script())
    return (
        _templates()
        .get_template("page.html.j2")
        .render(
            page=page,
            share=share,
            icon=ICON,
            style=Markup(assets.style),
            script=Markup(assets.script),
            policy=assets.policy,
            data=Markup(as_json(page.data)),
        )
    )


def as_json(data: Any) -> str:
    """JSON that cannot end the element it stands in: titles and file names come from strangers."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@dataclass(frozen=True)
class Assets:
    """The style and the script of a page, which stand inside it."""

    style: str
    script: str
    images: str = "data:"  # where images may come from
    connect: str = "'none'"  # whom the script may ask
    workers: str = "'none'"  # where scripts that run beside it may come from

    @property
    def policy(self) -> str:
        """Only this style and this script run, nothing else is fetched: what a hostile title smuggled in would not."""
        return (
            f"default-src 'none'; img-src {self.images}; connect-src {self.connect}; style-src '{_hash(self.style)}'; "
            f"script-src '{_hash(self.script)}'; worker-src {self.workers}; base-uri 'none'; form-action 'none'"
        )


def read_assets(parts: Sequence[tuple[Path, Sequence[str]]], suffix: str) -> str:
    """Styles or scripts, joined in the order given: (page's folder, names) each."""
    files = [folder / suffix / f"{name}.{suffix}" for folder, names in parts for name in names]
    return "\n".join(file.read_text("utf-8") for file in files)


def in_one_scope(scripts: str) -> str:
    return f"(() => {{\n'use strict';\n{scripts}\n}})();"


@cache
def _style() -> str:
    return f"{fixed_colours()}\n{read_assets([(HERE, STYLES)], 'css')}"


@cache
def _script() -> str:
    return in_one_scope(read_assets([(HERE, SCRIPTS)], "js"))


def fixed_colours() -> str:
    """A class per teaching and per kind of head, so that no element needs a style of its own."""
    teachings = [
        f".t-{key} {{ --teaching: light-dark({on_paper(how.colour)}, {on_dark(how.colour)}); }}"
        for key, how in TEACHINGS.items()
    ]
    kinds = [
        f".k-{i} {{ --kind: light-dark({KIND_COLOURS[name]}, {DARK_KINDS.get(name, KIND_COLOURS[name])}); }}"
        for i, name in enumerate(KINDS)
    ]
    return "\n".join([*teachings, *kinds])


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
