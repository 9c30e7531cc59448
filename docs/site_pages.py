"""Pages of the site that follow from the source: one for every measure of the registry, and all findings.

mkdocs calls the functions whose names begin with `on_` (see mkdocs.yml). Nothing is written into docs/.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from vitscope.core.analysis import Analysis, Measure
from vitscope.findings import CLAIMS
from vitscope.findings.thresholds import THRESHOLDS
from vitscope.pipeline.registry import ANALYSES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NOTES = Path(__file__).parent / "measures.toml"
SETTINGS = "<!-- the settings of every analysis -->"  # stands in api.md where they go
DOMAINS = {"how": "How: attention", "what": "What: features", "why": "Why: tasks"}
WHOLE_PAGES = {  # written by `make docs` before the site: pages of vitscope's own, shown as they are
    "demo.html": "vitscope demo",
    "explorer.html": "vitscope explore --export",
}


@dataclass(frozen=True)
class Notes:
    """What the registry does not say of a measure: formula, what it is silent about, protocols, where it is from."""

    formula: str = ""
    silent: str = ""
    paper: str = ""
    reference: str = ""


def read_notes() -> dict[str, Notes]:
    return {name: Notes(**entry) for name, entry in tomllib.loads(NOTES.read_text()).items()}


def page_name(kind: type[Analysis], measure: Measure) -> str:
    """Where a measure's page stands.

    >>> page_name(ANALYSES["video"], ANALYSES["video"].measures[0])
    'measures/video/video_j-f.md'
    """
    return f"measures/{kind.name}/{re.sub(r'[^a-z0-9_.]', '-', measure.name)}.md"


def listed() -> Iterator[tuple[type[Analysis], Measure]]:
    return ((kind, measure) for kind in ANALYSES.values() for measure in kind.measures)


def measure_page(kind: type[Analysis], measure: Measure, notes: Notes) -> str:
    """The page of one measure."""
    first = measure.words[:1].upper() + measure.words[1:]
    lines = [f"# {measure.title}", "", f"{first}{f', in {measure.unit}' if measure.unit else ''}.", ""]
    if notes.formula:
        lines += ["## Definition", "", notes.formula, ""]
    if notes.silent:
        lines += ["## What it does not say", "", notes.silent, ""]
    lines += ["## Protocols", ""]
    if notes.paper:
        lines += [f"`paper` and `corrected` (the default) differ: {notes.paper}", ""]
    elif kind.has_protocols():
        lines += [f"`paper` and `corrected` (the default), as for all of {kind.title}; see below.", ""]
    else:
        lines += ["One, `corrected`: the published code has no trap here, or does not measure it.", ""]
    if notes.reference:
        lines += ["## Reference", "", notes.reference, ""]
    lines += [
        *("## Where it comes from", ""),
        f"The analysis `{kind.name}` ({kind.title}) of a dataset of the kind `{kind.kind}`, in `{kind.__module__}`; "
        f'its rows are `results["{measure.name}"]`.',
        "",
        *(f"> {line}".rstrip() for line in cleandoc(kind.__doc__ or "").splitlines()),
    ]
    return "\n".join(lines) + "\n"


def overview() -> str:
    """All measures, by domain."""
    lines = ["# Measures", "", "Everything that vitscope measures, from the list that the program itself uses.", ""]
    for domain, title in DOMAINS.items():
        lines += [f"## {title}", "", "| measure | what it is | data |", "|---|---|---|"]
        for kind, measure in listed():
            if kind.domain == domain:
                page = page_name(kind, measure).removeprefix("measures/")
                lines.append(f"| [{measure.title}]({page}) | {measure.words} | `{kind.kind}` |")
        lines.append("")
    return "\n".join(lines)


def findings_page() -> str:
    """All findings, with the rule by which each is judged."""
    lines = [
        *("# Findings", ""),
        "Findings F are the paper's, findings N came since. Each is judged on the models and images of a study: it "
        "holds, it does not, or it cannot be tested there; the page of a study says which, with the numbers that "
        "decided. On trained networks: [real networks](real-networks.md).",
        "",
    ]
    for claim in CLAIMS:
        lines += [f"## {claim.key}", "", f"**{claim.text}**", "", f"Rule: {claim.rule(THRESHOLDS)}", ""]
    return "\n".join(lines)


def settings_table() -> str:
    """All analyses as Python calls them, with their settings and what those are unless given."""
    lines = ["| analysis | data | settings |", "|---|---|---|"]
    for kind in ANALYSES.values():
        settings = (
            f"`{name}={field.default!r}`" + (f": {field.description}" if field.description else "")
            for name, field in kind.model_fields.items()
        )
        lines.append(f"| `vitscope.{kind.__name__}` | `{kind.kind}` | {'<br>'.join(settings)} |")
    return "\n".join(lines)


def measure_nav() -> list[dict[str, Any]]:
    """Measures in the site's navigation: an overview, and domains with analyses in them."""
    nav: list[Any] = ["measures/index.md"]
    for domain, title in DOMAINS.items():
        analyses = [kind for kind in ANALYSES.values() if kind.domain == domain and kind.measures]
        nav.append({title: [{kind.title: [{m.title: page_name(kind, m)} for m in kind.measures]} for kind in analyses]})
    return nav


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    assert config.nav is not None
    place = next(i for i, entry in enumerate(config.nav) if "Findings" in entry)
    config.nav.insert(place, {"Measures": measure_nav()})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    notes = read_notes()
    pages = {"measures/index.md": overview(), "findings.md": findings_page()}
    pages |= {page_name(kind, m): measure_page(kind, m, notes.get(m.name, Notes())) for kind, m in listed()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    folder = Path(os.environ.get("SITE_PAGES", "runs/site"))
    for name, command in WHOLE_PAGES.items():
        if not (folder / name).is_file():
            raise PluginError(f"there is no {folder / name}: `make docs` writes it with `{command}`")
        files.append(File.generated(config, f"pages/{name}", abs_src_path=str((folder / name).resolve())))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    return markdown.replace(SETTINGS, settings_table()) if page.file.src_uri == "api.md" else markdown


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Docstrings of the house name an argument per line; in the reference each gets its line too."""
    if page.file.src_uri != "api.md":
        return html
    argument = re.compile(r"\n *([a-z_]+(?:, [a-z_]+)*): ")
    return re.sub(r"<p>.*?</p>", lambda found: argument.sub(r"<br><b>\1</b>: ", found[0]), html, flags=re.DOTALL)
