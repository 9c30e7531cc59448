"""The figures of a study for papers and talks: PNG, SVG and PDF, and an index of them. The page draws its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from markupsafe import Markup

from vitscope.core.errors import VitscopeError
from vitscope.core.files import write_text
from vitscope.core.reading import SMALL, read_json
from vitscope.core.results import Results
from vitscope.report.attention_figures import draw_attention
from vitscope.report.feature_pictures import draw_pictures
from vitscope.report.features_figures import draw_features
from vitscope.report.growing_up import draw_growing
from vitscope.report.head_figures import importance_figures
from vitscope.report.style import FORMATS, Width, figure_width, save_figure, styled
from vitscope.report.tasks_figures import draw_tasks
from vitscope.report.token_figures import draw_tokens

INDEX = Markup("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Figures: {title}</title>
<style>body {{ font: 1rem/1.5 sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
figure {{ margin: 0 0 3rem; }} img {{ max-width: 100%; display: block; margin-top: 0.5rem; }}</style></head>
<body><h1>Figures: {title}</h1>
{figures}
</body></html>
""")
FIGURE = Markup(
    '<figure id="{name}"><figcaption><b>{name}</b> {links}</figcaption><img src="{name}.png" alt="{name}"></figure>'
)
DRAWN = ".drawn.json"  # names of the files of the last drawing


def draw_figures(results: Results, folder: Path, width: Width | None = None) -> list[Path]:
    """Write every figure that the results allow, in every format, and index.html; returns the files.

    width: of a paper's column or page; as wide as they like if not given. Figures that were drawn here before of other
    results, and are not of these, are taken away.
    """
    with figure_width(width):
        paths = _draw(results, folder)
    names = {path.name for path in paths}
    for stale in _drawn_before(folder) - names:
        (folder / stale).unlink(missing_ok=True)
    if paths:
        write_text(folder / DRAWN, json.dumps(sorted(names)))
        paths.append(write_index(results.title, paths, folder))
    return paths


def _drawn_before(folder: Path) -> set[str]:
    if not (folder / DRAWN).is_file():
        return set()
    try:
        names = read_json(folder / DRAWN, most=SMALL)
        return {name for name in names if name == Path(name).name and Path(name).suffix[1:] in FORMATS}
    except (VitscopeError, TypeError, ValueError):  # damaged: then nothing is known
        return set()


def _draw(results: Results, folder: Path) -> list[Path]:
    paths = []
    if _has(results, "attention_distance") or _has(results, "saliency_best_head"):
        paths += draw_attention(results, folder)
    if _has(results, "effective_rank") or _has(results, "purity"):
        paths += draw_features(results, folder)
    with styled():
        for name, figure in importance_figures(results).items():
            paths += save_figure(figure, folder, name)
    paths += draw_growing(results, folder)
    paths += draw_pictures(results, folder)
    paths += draw_tokens(results, folder)
    return paths + draw_tasks(results, folder)


def write_index(title: str, paths: Sequence[Path], folder: Path) -> Path:
    """A page of all figures, with links to their files."""
    files: dict[str, list[str]] = {}
    for path in paths:
        files.setdefault(path.stem, []).append(path.name)
    link = Markup('<a href="{0}">{1}</a>')
    figures = [
        FIGURE.format(name=name, links=Markup(" ").join(link.format(one, one.rpartition(".")[2]) for one in several))
        for name, several in sorted(files.items())
    ]
    write_text(folder / "index.html", INDEX.format(title=title or "a study", figures=Markup("\n").join(figures)))
    return folder / "index.html"


def _has(results: Results, measure: str) -> bool:
    return not results.table.filter(pl.col("measure") == measure).is_empty()
