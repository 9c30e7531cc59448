"""The explorer as a person meets it: the real server and page, in Chromium, beside `Backbone.trace` in Python."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, expect
from safetensors.torch import save_file

from tests.report.explorer.conftest import DRAWN, Running, as_png, run_explorer, shown_values, until, zoo_session
from vitscope.attention.rollout import rollout
from vitscope.attention.saliency import top_mass_mask
from vitscope.features.projection import pca
from vitscope.models.kept import Kept, trace_image
from vitscope.models.registry import ZOO
from vitscope.models.spec import resolve
from vitscope.report.explorer.choice import Choice

LAYER = 8  # counted from 0


def drop(page: Page, data: bytes, where: str = "body") -> None:
    """Let go of a file above an element, as a person does."""
    page.evaluate(
        """([bytes, where]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], "photo.png", { type: "image/png" }));
            const target = document.querySelector(where);
            target.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [list(data), where],
    )


def click_patch(page: Page, canvas: str, patch: int, grid: tuple[int, int]) -> None:
    box = page.locator(canvas).first.bounding_box()
    assert box
    row, column = divmod(patch, grid[1])
    page.mouse.click(
        box["x"] + (column + 0.5) / grid[1] * box["width"], box["y"] + (row + 0.5) / grid[0] * box["height"]
    )


def show(page: Page, **update: Any) -> None:
    page.evaluate("update => vitscope.change(update)", update)
    page.wait_for_timeout(50)
    until(page, DRAWN)
    page.wait_for_timeout(50)


@pytest.fixture
def dropped(explore: Any, running: Running, photo: Image.Image) -> Page:
    """The page with a photo that was dropped onto it."""
    page: Page = explore(running.address)
    drop(page, as_png(photo))
    until(page, f"vitscope.state.image.startsWith('u') && {DRAWN}")
    return page


def test_a_clicked_patch_shows_what_python_says(dropped: Page, running: Running, photo: Image.Image) -> None:
    """Every view of a dropped file, for each model side by side."""
    page, patch = dropped, 21
    grid = running.session.backbone(0).layout.grid
    show(page, layer=LAYER)
    page.get_by_role("button", name="Point attention").click()
    click_patch(page, "#image", patch, grid)
    page.wait_for_timeout(100)
    order = page.evaluate("vitscope.shown.map((one) => one.model)")
    assert len(order) == 3
    for position, model in enumerate(order):
        kept = trace_image(running.session.models[model].load("cpu"), photo)
        for view, head, wanted, tolerance in expected(kept, patch):
            show(page, view=view, head=head)
            found = shown_values(page, position)
            assert (found - wanted).abs().max() <= tolerance * wanted.abs().max(), (model, view, head)


def expected(kept: Kept, patch: int) -> list[tuple[str, Any, torch.Tensor, float]]:
    """View, head, its values (N,), and how far half precision may be off."""
    attention, tokens = kept.attention[LAYER], kept.tokens[LAYER, 1:]
    means, source = list(kept.attention.mean(1)), torch.eye(kept.layout.tokens)
    norms = tokens.norm(dim=1)
    return [
        ("point", "mean", attention[:, 1 + patch, 1:].mean(0), 2e-3),
        ("point", 1, attention[1, 1 + patch, 1:], 2e-3),
        ("point", "rollout", rollout(means, source[1 + patch])[LAYER, 1:], 2e-3),
        ("cls", "mean", attention[:, 0, 1:].mean(0), 2e-3),
        ("cls", "rollout", rollout(means, source[0])[LAYER, 1:], 2e-3),
        ("similar", "mean", torch.cosine_similarity(tokens, tokens[patch], dim=1), 3e-3),
        ("norms", "mean", norms, 2e-3),
        ("mask", 2, top_mass_mask(attention[2, 0, 1:], 0.6).float(), 0),
    ]


def test_colours_are_the_principal_components(dropped: Page, running: Running, photo: Image.Image) -> None:
    """Within the colours' own scaling, which is linear between the 2nd and the 98th percentile."""
    show(dropped, view="pca", layer=LAYER)
    found = shown_values(dropped).reshape(-1, 3).double()
    model = dropped.evaluate("vitscope.shown[0].model")
    kept = trace_image(running.session.models[model].load("cpu"), photo)
    wanted, _ = pca(torch.nn.functional.normalize(kept.tokens[LAYER, 1:], dim=1), 3)
    for component in range(3):
        inside = (found[:, component] > 0) & (found[:, component] < 1)
        pair = torch.stack([found[inside, component], wanted[inside, component]])
        assert torch.corrcoef(pair)[0, 1] > 0.999, component


def test_pixels_are_painted_in_the_colours_of_the_values(dropped: Page) -> None:
    """Without the image below, each patch has the colour that its value has on the ramp."""
    show(dropped, view="cls", over=False, head="mean")
    values = shown_values(dropped)
    edge = round(len(values) ** 0.5)
    centres = dropped.evaluate(
        """edge => {
            const canvas = document.querySelector("#panels canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const middle = (i) => Math.floor(((i + 0.5) * canvas.width) / edge);
            return Array.from({ length: edge * edge }, (_, i) => {
                const at = 4 * (middle(Math.floor(i / edge)) * canvas.width + middle(i % edge));
                return Array.from(data.slice(at, at + 3));
            });
        }""",
        edge,
    )
    brightness = np.array(centres) @ [0.299, 0.587, 0.114]  # the ramp goes from dark to bright
    order = np.argsort(values.numpy(), kind="stable")
    assert (np.diff(brightness[order]) > -1).all()
    assert brightness[order[-1]] - brightness[order[0]] > 120


def test_hovering_tells_the_number(dropped: Page, running: Running) -> None:
    show(dropped, view="cls", head="mean")
    values = shown_values(dropped)
    grid = running.session.backbone(0).layout.grid
    box = dropped.locator("#panels canvas").first.bounding_box()
    assert box
    dropped.mouse.move(box["x"] + 2.5 / grid[1] * box["width"], box["y"] + 1.5 / grid[0] * box["height"])
    told = dropped.locator("#tooltip").inner_text()
    assert "row 2, column 3" in told
    assert abs(float(told.split()[0]) - float(values[grid[1] + 2])) < 6e-4


def test_a_second_image_has_the_best_match(explore: Any, running: Running) -> None:
    page = explore(running.address)
    show(page, image="g0", second="g2", layer=LAYER, point=[0.4, 0.6])
    until(page, "vitscope.matches.size === 3")
    page.wait_for_timeout(300)
    backbone = running.session.models[0].load("cpu")
    first, second = (trace_image(backbone, running.session.gallery[i].load()) for i in (0, 2))
    h, w = backbone.layout.grid
    patch = int(0.6 * h) * w + int(0.4 * w)
    scores = torch.cosine_similarity(second.tokens[LAYER, 1:], first.tokens[LAYER, 1 + patch], dim=1)
    found = page.evaluate("vitscope.matches.get(0)")
    assert abs(found["score"] - float(scores.max())) < 2e-3
    assert scores[found["patch"]] > scores.max() - 2e-3
    expect(page.locator("#pairs .told").first).to_contain_text("best match")


def test_models_views_and_layers_are_switched(explore: Any, running: Running) -> None:
    page = explore(running.address)
    expect(page.locator("#panels .map")).to_have_count(3)
    page.locator("#models").get_by_role("button", name="MAE").click()
    expect(page.locator("#panels .map")).to_have_count(2)
    page.get_by_label("all views of one model").check()
    expect(page.locator("#panels .map")).to_have_count(7)
    until(page, "vitscope.shown.filter((one) => one.map).length >= 6")
    page.get_by_label("all views of one model").uncheck()
    page.locator("#strip .tile").nth(3).click()
    expect(page.locator("#layer-value")).to_have_text("4")
    page.locator("#atlas").click(position={"x": 40, "y": 40})
    expect(page.locator("#layer-value")).to_have_text("1")
    expect(page.locator("#head-value")).to_have_text("1")


def test_keys_do_it_too(explore: Any, running: Running) -> None:
    page = explore(running.address)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#layer-value")).to_have_text("11")
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    expect(page.locator("#head-value")).to_have_text("1")
    page.keyboard.press("3")
    expect(page.get_by_role("button", name="Similarity")).to_have_attribute("aria-pressed", "true")
    page.locator("#image").focus()
    before = page.evaluate("vitscope.state.point[0]")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("vitscope.state.point[0]") > before
    page.locator("body").click(position={"x": 3, "y": 300})
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Space")


def test_a_link_restores_everything(explore: Any, running: Running) -> None:
    page = explore(running.address)
    show(page, image="m42", second="g3", models=[2, 0], focus=0, view="point", layer=4, head=2, point=[0.25, 0.75],
         mass=0.4, over=False)  # fmt: skip
    until(page, "location.hash.includes('m42')")  # when the hand rests
    state, link = page.evaluate("({ ...vitscope.state })"), page.evaluate("location.href")
    again = explore(link)
    until(again, DRAWN)
    assert again.evaluate("({ ...vitscope.state })") == state
    assert torch.equal(shown_values(again), shown_values(page))


@pytest.mark.parametrize("hash_", [
    "#i=../../etc/passwd&m=nothing&v=<script>&l=99&h=-4&p=7,NaN", "#%E0%A4%A&l=1e999", "#m=%25E0%25A4%25A", "#p=,&k=x",
])  # fmt: skip
def test_a_strange_link_is_no_trouble(explore: Any, running: Running, hash_: str) -> None:
    page = explore(running.address + hash_)
    assert 0 <= page.evaluate("vitscope.state.layer") < 12


def test_what_is_saved_is_what_is_seen(explore: Any, running: Running) -> None:
    page = explore(running.address)
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    picture = Image.open(saved.value.path())
    assert picture.width > 3 * 448
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").click()
    root = ElementTree.fromstring(saved.value.path().read_text())
    names = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"DINO", "MAE", "FS"} <= names
    assert len(list(root.iter("{http://www.w3.org/2000/svg}image"))) == 3


@pytest.mark.parametrize(
    ("view", "head", "second"),
    [
        *((view, head, "") for view in ("cls", "point", "mask") for head in ("mean", "rollout", 1)),
        *((view, "mean", "") for view in ("similar", "norms", "segments")),
        *(("pca", "mean", second) for second in ("", "g4")),
    ],
)
def test_the_lines_of_python_make_the_same_numbers(
    explore: Any, running: Running, view: str, head: Any, second: str
) -> None:
    page = explore(running.address)
    show(page, image="m3" if view == "point" else "g1", second=second, view=view, head=head, layer=LAYER)
    if view == "segments":
        until(page, "vitscope.shown.every((one) => one.map?.kind === 'labels')")
    names: dict[str, Any] = {}
    exec(page.evaluate("vitscope.pythonLines()").replace("open_gallery(None)", "menagerie_gallery(6)").replace(
        "import open_gallery", "import menagerie_gallery"), names)  # fmt: skip
    found, wanted = shown_values(page), names["shown"].flatten().float()
    if view == "segments":
        assert (found == wanted).float().mean() > 0.95  # half precision decides some votes
    else:
        assert (found - wanted).abs().max() <= (0.02 if view == "pca" else 3e-3) * wanted.abs().max()


def test_the_lines_of_python_name_the_readers_own_files(
    explore: Any, photo: Image.Image, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card, a dropped file and a folder, by their names: a path of this machine is nobody's business."""
    backbone = resolve("zoo/dino").load("cpu")
    save_file(backbone.module.state_dict(), tmp_path / "mine.safetensors")
    card = (ZOO / "dino.toml").read_text().replace("zoo/dino", "mine").replace("dino.safetensors", "mine.safetensors")
    (tmp_path / "mine.toml").write_text(card)
    photo.save(tmp_path / "photo.png")
    for explorer in run_explorer(zoo_session(choice=Choice((tmp_path,)))):
        page = explore(explorer.address)
        page.get_by_label("Add a model").fill("mine.toml")
        page.keyboard.press("Enter")
        until(page, "vitscope.state.models.length === 4")
        drop(page, (tmp_path / "photo.png").read_bytes())
        until(page, f"vitscope.state.image.startsWith('u') && {DRAWN}")
        show(page, models=[3], view="cls", head="mean")
        lines = page.evaluate("vitscope.pythonLines()")
        assert str(tmp_path) not in page.content() + lines
        monkeypatch.chdir(tmp_path)
        names: dict[str, Any] = {}
        exec(lines, names)
        wanted = names["shown"].flatten()
        assert (shown_values(page) - wanted).abs().max() <= 3e-3 * wanted.max()
        page.close()


def test_a_model_is_typed_in(explore: Any) -> None:
    """Drawn beside the others, with its own numbers; a link brings it back, and a name that is none is told."""
    for explorer in run_explorer(zoo_session()):
        page = explore(explorer.address)
        field = page.get_by_label("Add a model")
        field.fill("zoo/moco")
        field.press("Enter")
        expect(page.locator("#panels .map")).to_have_count(4)
        until(page, DRAWN)
        model = resolve("zoo/moco").load("cpu")
        kept = trace_image(model, explorer.session.image(page.evaluate("vitscope.state.image")))
        wanted = kept.attention[-1, :, 0, 1:].mean(0)
        assert (shown_values(page, 3) - wanted).abs().max() <= 2e-3 * wanted.max()
        page.wait_for_timeout(300)
        again = explore(page.evaluate("location.href"))
        expect(again.locator("#panels .map")).to_have_count(4)
        page.close()
        again.close()


def test_a_name_that_is_none_is_told(running: Running, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(running.address)
    until(page, DRAWN)
    page.get_by_label("Add a model").fill("dino-b61")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("no model is called 'dino-b61'")
    expect(page.locator("#notice")).to_contain_text("did you mean dino-b16")
    expect(page.locator("#panels .map")).to_have_count(3)
    context.close()


def test_neighbours_and_segments_appear(explore: Any, running: Running) -> None:
    page = explore(running.address)
    expect(page.locator("#neighbours .near")).to_have_count(3)
    expect(page.locator("#neighbours .near").first.locator(".near-tile")).to_have_count(10 + 5)
    page.get_by_role("button", name="Segmentation").click()
    until(page, "vitscope.shown.every((one) => one.map?.kind === 'labels')")
    page.locator("#neighbours .near-tile").last.click()
    until(page, "vitscope.state.second.startsWith('g')")


@pytest.mark.parametrize("called", ["DINO", "zoo/dino"])  # by its title, or as single commands call it
def test_a_run_brings_its_numbers(explore: Any, called: str) -> None:
    tasks = [{"task": "k-NN", "dataset": "species", "score": "top-1", "layer": 9, "value": "61.20"}]
    study = {called: {"tasks": tasks, "kinds": [[i % 6] * 4 for i in range(12)]}}
    for explorer in run_explorer(zoo_session(study=study)):
        page = explore(explorer.address)
        expect(page.locator("#study-table")).to_contain_text("61.20")
        page.get_by_role("button", name="layer 9", exact=True).click()
        expect(page.locator("#layer-value")).to_have_text("9")
        show(page, head=0)
        expect(page.locator("#panels .kind").first).to_have_text("strict local")  # the third kind, as 8 % 6 says
        page.close()  # before its server ends


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_it_fits_its_window_and_can_be_heard(explore: Any, running: Running, width: int, dark: bool) -> None:
    page = explore(running.address, width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, input, canvas[role]")]
        .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
        .map((one) => one.outerHTML)""")
    assert nameless == []


def test_nonsense_that_is_dropped_is_told(running: Running, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(running.address)
    until(page, DRAWN)
    drop(page, b"not an image at all")
    expect(page.locator("#notice")).to_have_text("this image is not an image of a known format")
    context.close()


def test_a_page_of_another_origin_gets_nothing(running: Running, browser: Any) -> None:
    """A foreign page that even knows the token can neither read nor upload."""
    context = browser.new_context()
    page = context.new_page()
    page.route("http://evil.example/", lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"))
    page.goto("http://evil.example/")
    for method in ("GET", "POST"):
        said = page.evaluate(
            """async ([address, method]) => {
                try { return (await fetch(address, { method, body: method === "POST" ? "x" : undefined })).status; }
                catch (error) { return "refused"; }
            }""",
            [f"{running.address}{'images' if method == 'POST' else 'status'}", method],
        )
        assert said == "refused"
    context.close()


def test_status_counts_bytes(running: Running) -> None:
    status = json.loads(running.ask("status")[1])
    assert status["bytes"]["traces"] <= running.session.memory
