"""The explorer's server: answers that are right, and everything that is refused or survived."""

from __future__ import annotations

import http.client
import io
import json
import shutil
import socket
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load

from tests.report.explorer.conftest import TOKEN, Running, as_png, run_explorer, zoo_session
from vitscope.data.openers import images
from vitscope.models.kept import trace_image
from vitscope.models.registry import ZOO
from vitscope.report.explorer import session
from vitscope.report.explorer.bank import Bank
from vitscope.report.explorer.choice import Choice
from vitscope.report.explorer.gallery import menagerie_gallery
from vitscope.report.explorer.server import HOST
from vitscope.report.explorer.session import MOST_BYTES, SHOWN, Session, Shelf


def test_a_dropped_image_is_traced_as_in_python(running: Running, photo: Image.Image) -> None:
    status, answer = running.ask("images", method="POST", body=as_png(photo))
    assert status == 200
    status, data = running.ask(f"traces/0/{json.loads(answer)['name']}")
    assert status == 200
    arrays = load(data)
    kept = trace_image(running.session.models[0].load("cpu"), photo)
    assert arrays["attention"].dtype == torch.float16
    assert torch.allclose(arrays["attention"].float(), kept.attention, atol=1e-3, rtol=1e-3)  # half precision: 2 ** -11
    tokens = arrays["tokens"].float() * arrays["scale"][:, None, None]
    assert torch.allclose(tokens, kept.tokens, atol=1e-2, rtol=1e-3)


def test_an_image_is_traced_once(running: Running) -> None:
    running.ask("traces/0/m5")
    before = running.session.backbone(0).images_traced
    first, again = running.ask("traces/0/m5"), running.ask("traces/0/m5")
    assert first == again
    assert running.session.backbone(0).images_traced == before


def test_pictures_are_what_the_model_sees(running: Running) -> None:
    status, data = running.ask("pictures/0/g1")
    picture = Image.open(io.BytesIO(data))
    assert (status, picture.size) == (200, (SHOWN, SHOWN))
    seen = np.asarray(running.session.gallery[1].load().resize((SHOWN, SHOWN), Image.Resampling.BICUBIC)).astype(float)
    assert np.abs(np.asarray(picture) - seen).mean() < 3  # JPEG
    assert Image.open(io.BytesIO(running.ask("thumbs/0/g1")[1])).size == (96, 96)


def test_neighbours_and_segments_agree_with_a_plain_computation(running: Running) -> None:
    while not (answer := json.loads(running.ask("banks/0")[1]))["kinds"]:
        assert answer["done"] < answer["planned"] == 6
    backbone, gallery = running.session.models[0].load("cpu"), running.session.gallery
    tokens = [trace_image(backbone, sample.load()).tokens[11] for sample in gallery]
    unit = [torch.nn.functional.normalize(one[1:].double(), dim=1) for one in tokens]
    found = load(running.ask("neighbours/0/g2/11/9")[1])
    others = [i for i in range(6) if i != 2]
    scores = torch.stack([unit[i] @ unit[2][9] for i in others])  # (5, N)
    best = scores.flatten().topk(10).values
    assert torch.allclose(found["patch_scores"].double(), best, atol=2e-3)
    top = int(scores.flatten().argmax())
    assert (int(found["patch_images"][0]), int(found["patches"][0])) == (
        others[top // scores.shape[1]],
        top % scores.shape[1],
    )
    near = torch.stack([torch.cosine_similarity(tokens[i][0], tokens[2][0], dim=0) for i in others])
    assert int(found["images"][0]) == others[int(near.argmax())]
    segments = load(running.ask("segmentations/0/g2")[1])
    assert segments["labels"].shape == (12, unit[2].shape[0])
    assert 0 <= segments["labels"].min() <= segments["labels"].max() <= len(gallery.categories)


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Host": "127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
])  # fmt: skip
def test_pages_of_others_are_refused(running: Running, headers: dict[str, str]) -> None:
    for path, method in (("", "GET"), ("images", "POST"), ("traces/0/g0", "GET")):
        status, answer = running.ask(path, method=method, headers=headers)
        assert status in (403, 421), path
        assert set(json.loads(answer)) == {"error"}


def test_its_own_page_is_let_in(running: Running) -> None:
    own = {"Origin": f"http://{HOST}:{running.port}", "Sec-Fetch-Site": "same-origin"}
    assert running.ask("status", headers=own)[0] == 200


@pytest.mark.parametrize("token", ["wrong", "", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "../" + TOKEN, "%2e%2e"])
def test_without_the_token_there_is_nothing(running: Running, token: str) -> None:
    status, answer = running.ask("status", token=token)
    assert status == 404
    assert b"bytes" not in answer


@pytest.mark.parametrize("name", [
    "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "g-1", "g999999", "g1e3", "u..", "x",
    "uffffffffffffffffffffffffffffffff", "g0%00", "m99999999999999999999", "g%D9%A3",
])  # fmt: skip
def test_only_the_gallery_can_be_named(running: Running, name: str) -> None:
    for path in (f"pictures/0/{name}", f"traces/0/{name}", f"thumbs/0/{name}"):
        status, answer = running.ask(path)
        assert status == 404, (path, answer)
        assert b"root" not in answer


@pytest.mark.parametrize("path", [
    "traces/99/g0", "neighbours/0/g0/99/0", "neighbours/0/g0/0/99999", "segmentations/0/g99", "banks/99",
    "pictures/9999999999999999999999/g0",
])  # fmt: skip
def test_what_there_is_not_is_told(running: Running, path: str) -> None:
    assert running.ask(path)[0] == 404


def test_a_link_out_of_the_folder_is_not_followed(photos: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    Image.new("RGB", (32, 32), "red").save(outside)
    (photos / "class0" / "zz.png").symlink_to(outside)
    gallery = images(photos).samples
    session = Session(zoo_session().models, gallery, root=photos, device="cpu")
    place = gallery.ids.index("class0/zz.png")
    for explorer in run_explorer(session):
        assert explorer.ask("pictures/0/g0")[0] == 200
        assert explorer.ask(f"pictures/0/g{place}")[0] == 404


def test_no_answer_names_a_path_of_the_machine(photos: Path) -> None:
    (photos / "class0" / "broken.png").write_bytes(b"not an image")
    gallery = images(photos).samples
    session = Session(zoo_session().models, gallery, root=photos, device="cpu")
    broken = gallery.ids.index("class0/broken.png")
    for explorer in run_explorer(session):
        answers = [
            explorer.ask(path) for path in ("", f"pictures/0/g{broken}", f"traces/0/g{broken}", "status", "nothing")
        ]
        assert [status for status, _ in answers] == [200, 422, 422, 200, 404]
        for _, answer in answers:
            assert str(photos).encode() not in answer
            assert b"/site-packages/" not in answer
        assert b"is not an image of a known format" in answers[1][1]


# -- models that are typed in ------------------------------------------------------------------------------------------


def typed(running: Running, text: str | bytes) -> tuple[int, dict[str, Any]]:
    status, answer = running.ask("models", method="POST", body=text)
    return status, json.loads(answer)


def test_names_and_files_are_taken_once(photos: Path, tmp_path: Path) -> None:
    cards = tmp_path / "cards" / "sub"
    cards.mkdir(parents=True)
    for name in ("mae.toml", "mae.safetensors"):
        shutil.copy(ZOO / name, cards / name)
    session = Session(zoo_session().models, images(photos).samples, root=photos, device="cpu",
                      choice=Choice((tmp_path / "cards",), seed=3))  # fmt: skip
    for explorer in run_explorer(session):
        status, answer = typed(explorer, "random:zoo/dino")
        assert (status, answer["number"]) == (200, 3)
        assert answer["model"]["load"] == 'vitscope.load_model("random:zoo/dino", seed=3)'
        assert typed(explorer, " random:zoo/dino ")[1]["number"] == 3
        assert typed(explorer, "zoo/mae")[1]["number"] == 1  # it was there at the start, under another title
        status, answer = typed(explorer, "sub/mae.toml")
        assert (status, answer["number"]) == (200, 4)
        assert explorer.ask("traces/4/g0")[1] == explorer.ask("traces/1/g0")[1]
        page = explorer.ask("")[1].decode()
        assert '"sub/mae.toml"' in page
        assert str(tmp_path) not in page


@pytest.mark.parametrize("text", [
    "", " ", "x" * 201, "a\nb", "no-such-model", "zoo/../dino", "zoo/nobody", "random:", "random:nothing", "resnet50",
    "/etc/passwd", "../cards/mae.toml", "..\\mae.toml", "/etc/hosts.toml", "link.toml", "none.toml", "~/mae.toml",
    "pyproject.toml", "random:pyproject.toml", "mae.safetensors", "vit_base_patch16_224", "<script>", "file:mae.toml",
])  # fmt: skip
def test_what_is_no_model_is_told_without_a_path(
    running: Running, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        shutil.copy(ZOO / "mae.toml", folder / ("pyproject.toml" if folder == outside else "broken.toml"))
        shutil.copy(ZOO / "mae.safetensors", folder)
    (inside / "link.toml").symlink_to(outside / "pyproject.toml")
    monkeypatch.chdir(outside)  # what lies where the server was started was not named
    monkeypatch.setattr(running.session, "choice", Choice((inside,)))
    before = len(running.session.models)
    status, answer = typed(running, text)
    assert status == 404, answer
    assert set(answer) == {"error"}
    assert str(tmp_path) not in answer["error"]
    assert "/etc/" not in answer["error"] or text in answer["error"]
    assert len(running.session.models) == before


def test_a_broken_card_is_told_on_the_terminal(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.toml").write_text("name = 'x'\narchitecture = 'vit_tiny_patch16_224'\nweights = 'gone.pth'")
    monkeypatch.setattr(running.session, "choice", Choice((tmp_path,)))
    status, answer = typed(running, "broken.toml")
    assert (status, answer["error"]) == (422, "this cannot be done; the terminal says why")


def test_too_many_models_and_too_long_names(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST_MODELS", len(running.session.models))
    assert "start the explorer anew" in typed(running, "random:zoo/mae")[1]["error"]
    assert typed(running, b"x" * 5000)[0] == 413


# -- uploads -----------------------------------------------------------------------------------------------------------


def test_a_gigabyte_is_refused_before_it_is_sent(running: Running) -> None:
    connection = http.client.HTTPConnection(HOST, running.port, timeout=20)
    connection.putrequest("POST", f"/{TOKEN}/images")
    connection.putheader("Content-Length", str(1 << 30))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_stream_without_end_is_left(running: Running) -> None:
    block, sent = bytes(1 << 20), 0
    with socket.create_connection((HOST, running.port), timeout=20) as wire:
        head = f"POST /{TOKEN}/images HTTP/1.1\r\nHost: {HOST}:{running.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode())
        try:
            while sent < 1 << 30:
                wire.sendall(b"%x\r\n%s\r\n" % (len(block), block))
                sent += len(block)
        except OSError:  # the server has closed its side
            pass
        try:
            answer = wire.recv(100)
        except OSError:
            answer = b""
    assert sent < 8 * MOST_BYTES
    assert answer == b"" or b"413" in answer
    assert running.ask("status")[0] == 200


@pytest.mark.parametrize("length", ["-1", "1e9", "99999999999999999999999"])
def test_lengths_that_are_none(running: Running, length: str) -> None:
    assert running.ask("images", method="POST", headers={"Content-Length": length})[0] in (400, 413)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few kilobytes that says it is enormous."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1 << 20), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bomb(60_000, 60_000), b"megapixels"),
        (bomb(9_000, 9_000), b"limit of 40 megapixels"),
        (bomb(3_000, 3_000), b"cannot be decoded"),
        (b"", b"not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"not an image"),
        (b"%!PS-Adobe EPSF", b"not an image"),
    ],
)
def test_bombs_and_nonsense_are_told(running: Running, data: bytes, reason: bytes) -> None:
    status, answer = running.ask("images", method="POST", body=data)
    assert status == 422
    assert reason in answer


# -- many, and those who go away --------------------------------------------------------------------------------


def test_fifty_requests_at_once(running: Running) -> None:
    paths = [f"traces/{i % 3}/m{100 + i // 6}" for i in range(50)]  # every trace is wanted twice
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(running.ask, paths))
    assert {status for status, _ in answers} == {200}
    together = dict(zip(paths, answers, strict=True))
    assert all(together[path] == answer for path, answer in zip(paths, answers, strict=True))


def test_more_than_is_worth_waiting_for(running: Running) -> None:
    """While the worker is held up, waiting requests are counted, and those beyond the bound are told to come again."""
    gate = threading.Event()
    running.explorer.worker.submit("gate", lambda _stop: gate.wait(30))
    with ThreadPoolExecutor(90) as pool:
        asked = [pool.submit(running.ask, f"traces/0/m{500 + i}") for i in range(90)]
        while sum(future.done() for future in asked) < 20:
            time.sleep(0.05)
        gate.set()
        statuses = [future.result()[0] for future in asked]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 60
    assert running.explorer.worker.waiting == 0


def test_who_goes_away_costs_nothing(running: Running) -> None:
    gate = threading.Event()
    running.explorer.worker.submit("gate", lambda _stop: gate.wait(30))
    before = running.session.backbone(1).images_traced
    for i in range(10):
        with socket.create_connection((HOST, running.port), timeout=20) as wire:
            wire.sendall(f"GET /{TOKEN}/traces/1/m{900 + i} HTTP/1.1\r\nHost: {HOST}:{running.port}\r\n\r\n".encode())
            time.sleep(0.05)
    deadline = time.monotonic() + 20
    while running.explorer.worker.waiting > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.explorer.worker.waiting == 1  # the gate itself
    gate.set()
    assert running.ask("traces/0/m77")[0] == 200
    assert running.session.backbone(1).images_traced == before


def test_a_forward_pass_stops_between_blocks(running: Running) -> None:
    from vitscope.models.kept import Stopped

    asked = iter([False, False, True])
    with pytest.raises(Stopped):
        trace_image(running.session.backbone(0), running.session.image("m1"), stop=lambda: next(asked))


def test_memory_is_bounded() -> None:
    shelf: Shelf[str] = Shelf(100)
    for i in range(10):
        shelf.put(i, "x", 30)
    assert (shelf.used, len(shelf)) == (90, 3)
    assert shelf.get(6) is None
    assert shelf.get(7) == "x"  # and is now the one used last
    shelf.put(10, "x", 30)
    assert shelf.get(8) is None
    assert shelf.get(7) == "x"
    shelf.put(11, "large", 1000)
    assert (shelf.used, len(shelf)) == (1000, 1)


def test_labelled_patches_vote_as_by_hand() -> None:
    """Three known patches, one query: the share of similarity decides, and the image itself does not vote."""
    bank = Bank.__new__(Bank)
    bank.labelled, bank.seen = True, [4, 7]
    bank.samples = menagerie_gallery(1)
    bank._patches = [[torch.tensor([[[1.0, 0], [0.6, 0.8]], [[0, 1.0], [1.0, 0]]]).half()]]
    bank._labels = [torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([2, 3], dtype=torch.uint8)]
    query = torch.tensor([[0.0, 2.0]])  # similarities 0, 0.8, 1, 0 with labels 1, 2, 2, 3
    found = bank.segment(0, query, None)
    assert found["labels"].tolist() == [2]
    assert found["share"].item() == pytest.approx(1.0, abs=1e-3)
    alone = bank.segment(0, torch.tensor([[1.0, 1.0]]), 7)  # the second image is left out: 0.71 for 1, 0.99 for 2
    assert alone["labels"].tolist() == [2]
    assert alone["share"].item() == pytest.approx(1.4 / 2.4, abs=1e-3)
