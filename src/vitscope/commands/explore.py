"""`vitscope explore`: look through models, live, on a local page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from vitscope.commands.options import ModelOptions, whole
from vitscope.core.errors import VitscopeError
from vitscope.core.reading import user_path
from vitscope.core.say import say
from vitscope.core.teachings import teaching

if TYPE_CHECKING:
    from vitscope.api import StudyResults
    from vitscope.models.spec import Spec

MISSING = "the explorer's server is not installed: pip install 'vitscope[explore]'"


def explore(
    *models: str,
    images: Path | None = None,
    run: Path | None = None,
    export: Annotated[list[Path] | None, Parameter(consume_multiple=True)] = None,
    port: Annotated[int, whole(0, 65535)] = 0,
    memory: Annotated[int, whole(64, 1 << 20)] = 512,
    browser: bool = True,
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Look through models, live: drop in a photo, click a patch, and see what each mind makes of it.

    Opens a page on this machine (127.0.0.1 only) until Ctrl-C. Without models it shows the zoo; without images, the
    menagerie.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:NAME (untrained), a model card (TOML) or a weights file; the
        zoo can be chosen beside them, and any name can be typed into the page. A folder: the cards (with --arch, also
        the weights) below it can be typed in too.
    images
        Folder of images to choose from and to find neighbours in; with masks (COCO, PartImageNet, images/ and masks/)
        also to segment by.
    run
        Folder of a finished run: its models, and its numbers beside the images.
    export
        Instead of a server, write one HTML file: PAGE IMAGE ... holds these images as the models see them (at most
        four models; the zoo's first four if none is named), PAGE alone the networks of the zoo, which run in it.
    port
        Of the server; 0 is any free one.
    memory
        Megabytes for traced images, and as many for what four models made of the folder; models (half of it, at least
        1 GB) and dropped images (half of it) have bounds of their own.
    browser
        Open the page in the browser.
    """
    results = _results(run)
    folders = tuple(user_path(model) for model in models if user_path(model).is_dir())
    specs, calls = _specs([model for model in models if user_path(model) not in folders], results, model_options)
    if export:
        _export(export[0], export[1:], specs[: len(calls)] if calls else specs, model_options.device)
        return
    try:
        from vitscope.report.explorer.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise VitscopeError(MISSING) from error
    from vitscope.report.explorer.choice import Choice
    from vitscope.report.explorer.gallery import open_gallery
    from vitscope.report.explorer.session import Session
    from vitscope.report.explorer.study import study_of

    session = Session(
        specs,
        open_gallery(images),
        root=images,
        device=model_options.device,
        memory=memory << 20,
        study=study_of(results) if results is not None else {},
        given=len(calls),
        choice=Choice(
            folders, model_options.arch, model_options.input_size, model_options.seed, model_options.download
        ),
        calls=calls,
    )

    def opened(address: str) -> None:
        say(f"explorer: {address} (Ctrl-C ends it)")
        if browser:
            import threading
            import webbrowser

            threading.Thread(
                target=webbrowser.open, args=[address], daemon=True
            ).start()  # some wait until it is closed

    serve(session, port=port, opened=opened)


def _export(page: Path, images: list[Path], specs: list[Spec], device: str) -> None:
    from vitscope.report.explorer.frozen import export_frozen
    from vitscope.report.explorer.networks import export_networks

    written = export_frozen(specs, images, page, device) if images else export_networks(specs, page)
    say(f"page: {written} ({written.stat().st_size / 1e6:.1f} MB)")


def _results(run: Path | None) -> StudyResults | None:
    if run is None:
        return None
    from vitscope.api import load_results

    return load_results(run)


def _specs(
    models: Sequence[str], results: StudyResults | None, options: ModelOptions
) -> tuple[list[Spec], dict[str, str]]:
    """The models named, then those of the run that have names, then the zoo; the same one counts once.

    And the Python expressions that load those named, by title.
    """
    from vitscope.models.several import distinct
    from vitscope.models.spec import resolve
    from vitscope.pipeline.demo import ORDER
    from vitscope.report.explorer.choice import load_call

    specs, calls = [], {}
    for model in models:
        specs += [_titled(spec) for spec in options.specs([model])]
        file = user_path(model)
        arch = options.arch if file.is_file() and file.suffix != ".toml" else None
        asked = file.name if file.is_file() else model  # the page tells no path
        calls[specs[-1].title] = load_call(asked, arch=arch, size=options.input_size, seed=options.seed)
    given = {word for spec in specs for word in (spec.name, spec.title)}
    for entry in _entries(results) if results is not None else []:
        try:
            if entry["name"] in given:
                continue
            specs.append(_titled(resolve(entry["name"], title=entry.get("title"))))
        except (VitscopeError, KeyError, TypeError) as error:
            say(f"a model of the run cannot be shown: {error}", style="yellow")
    named = {spec.name for spec in specs}
    specs += [_titled(resolve(f"zoo/{key}")) for key in ORDER if f"zoo/{key}" not in named]
    return list(distinct(specs)), calls


def _entries(results: StudyResults) -> list[dict[str, Any]]:
    """The models of a run: as its study file has them, or, of a single command, the titles that are names."""
    return results.settings.get("models") or [{"name": name} for name in results.table["model"].unique().sort()]


def _titled(spec: Spec) -> Spec:
    """The zoo goes by its teachings."""
    if not spec.name.startswith("zoo/") or spec.title != spec.name:
        return spec
    return replace(spec, title=teaching(spec.teaching).title)
