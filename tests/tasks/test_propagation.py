"""Label propagation where the answer is known: what stays, what moves, what is out of reach, what must not vanish."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from vitscope.tasks.propagation import (
    LabelPropagation,
    labels_on_grid,
    labels_on_grid_paper,
    normalised,
    propagate,
    strongest,
    to_mask,
    to_mask_paper,
)

OPTIONS: dict[str, Any] = {"radius": 12, "neighbours": 1, "temperature": 0.1}


def identities(h: int, w: int) -> torch.Tensor:
    """Features that are different for every place: (h, w, h * w)."""
    return torch.eye(h * w).view(h, w, -1)


def test_what_does_not_move_keeps_its_label() -> None:
    labels = F.one_hot(torch.arange(20).view(4, 5) % 3, 3).float()
    features = identities(4, 5)
    assert torch.equal(propagate(features, [features], [labels], **OPTIONS), labels)


def test_labels_travel_with_features() -> None:
    labels = F.one_hot((torch.arange(20).view(4, 5) == 7).long(), 2).float()
    before = identities(4, 5)
    after = before.roll(2, dims=1)  # everything moves two tokens to the right
    moved = propagate(after, [before], [labels], **OPTIONS)
    assert moved[1, 4, 1] == 1
    assert moved[..., 1].sum() == 1


def test_nobody_asks_beyond_the_radius() -> None:
    labels = F.one_hot((torch.arange(20).view(4, 5) == 0).long(), 2).float()
    before = identities(4, 5)
    after = before.roll(3, dims=1)
    for radius, found in ((3, 1), (2, 0)):
        moved = propagate(after, [before], [labels], radius=radius, neighbours=1, temperature=0.1)
        assert moved[0, 3, 1] == found


def test_a_neighbour_counts_by_its_cosine() -> None:
    target = normalised(torch.tensor([[[1.0, 0.0]]]))
    contexts = [normalised(torch.tensor([[[1.0, 0.0]]])), normalised(torch.tensor([[[0.6, 0.8]]]))]
    labels = [torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.0, 1.0]]])]
    found = propagate(target, contexts, labels, radius=0, neighbours=5, temperature=0.1)
    share = torch.tensor([1.0, 0.6]).div(0.1).softmax(0)  # e^10 against e^6
    torch.testing.assert_close(found[0, 0], share)


@pytest.mark.parametrize(("h", "w", "contexts"), [(5, 7, 1), (19, 23, 3), (20, 36, 8)])
def test_it_is_what_a_whole_frame_at_once_gives(h: int, w: int, contexts: int) -> None:
    """In float64, every token of every context: no blocks, no windows, no folds."""
    generator = torch.Generator().manual_seed(h)
    frames = [normalised(torch.randn(h, w, 8, generator=generator)) for _ in range(contexts + 1)]
    labels = [torch.rand(h, w, 3, generator=generator).softmax(-1) for _ in range(contexts)]
    found = propagate(frames[-1], frames[:-1], labels, radius=4, neighbours=5, temperature=0.1)
    place = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"), -1).view(-1, 2)
    near = ((place[:, None] - place).abs() <= 4).all(-1).repeat(1, contexts)
    everything = torch.stack(frames[:-1]).view(-1, 8).double()
    cosine = (frames[-1].view(-1, 8).double() @ everything.T).where(near, torch.tensor(-torch.inf).double())
    values, indices = cosine.sort(dim=1, descending=True)
    weights = (values[:, :5] / 0.1).softmax(1)
    votes = torch.stack(labels).view(-1, 3).double()[indices[:, :5]]
    torch.testing.assert_close(found.view(-1, 3).double(), (weights[..., None] * votes).sum(1), rtol=1e-5, atol=1e-6)


def test_every_layer_is_as_if_it_were_alone() -> None:
    frames = torch.randn(5, 3, 6, 7, 8, generator=torch.Generator().manual_seed(0))  # five frames, three layers
    first = F.one_hot(torch.arange(42).view(6, 7) % 2, 2).float()
    options: dict[str, Any] = {"previous": 2, "radius": 2, "neighbours": 5, "temperature": 0.1}
    together = LabelPropagation(frames[0], first, **options)
    alone = [LabelPropagation(frames[0, layer : layer + 1], first, **options) for layer in range(3)]
    for number in range(1, 5):
        every = together.step(frames[number])
        for layer in range(3):
            assert torch.equal(every[layer], alone[layer].step(frames[number, layer : layer + 1])[0])


def test_memory_holds_a_few_frames_however_long_the_video() -> None:
    video = LabelPropagation(
        torch.randn(1, 2, 2, 3), torch.ones(2, 2, 1), previous=3, radius=1, neighbours=2, temperature=1
    )
    for _ in range(10):
        video.step(torch.randn(1, 2, 2, 3))
    assert len(video._previous) == 3


def test_a_cell_belongs_to_what_covers_most_of_it() -> None:
    mask = torch.zeros(8, 8, dtype=torch.int64)
    mask[:, 3:] = 1  # columns 3..7: half of nothing in the first cell (1 of 4 columns), all of the second
    assert labels_on_grid(mask, 2, (2, 2)).argmax(-1).tolist() == [[0, 1], [0, 1]]


def test_no_object_vanishes() -> None:
    mask = torch.zeros(16, 16, dtype=torch.int64)
    mask[9, 14] = 1  # one pixel
    mask[0:8, 0:8] = 2
    on_grid = labels_on_grid(mask, 3, (4, 4)).argmax(-1)
    assert on_grid[2, 3] == 1
    assert (on_grid == 1).sum() == 1
    assert (on_grid == 2).sum() == 4
    assert not (labels_on_grid_paper(mask, 3, (4, 4)).argmax(-1) == 1).any()  # as published, it does


def test_an_object_outside_the_mask_gets_no_cell() -> None:
    on_grid = labels_on_grid(torch.tensor([[0, 2], [0, 2]]), 4, (2, 2))  # neither 1 nor 3 is there
    assert on_grid.sum((0, 1)).tolist() == [2, 0, 2, 0]


def test_the_strongest_class_and_the_first_of_equals() -> None:
    shares = torch.rand(5, 6, 7, generator=torch.Generator().manual_seed(0))
    assert torch.equal(strongest(shares), shares.argmax(0).to(torch.uint8))
    assert strongest(torch.ones(3, 2, 2)).sum() == 0


def test_masks_come_back_at_the_size_of_the_picture() -> None:
    labels = F.one_hot(torch.tensor([[0, 1], [0, 1]]), 2).float()
    expected = torch.zeros(6, 10, dtype=torch.uint8)
    expected[:, 5:] = 1
    assert torch.equal(to_mask(labels, (6, 10)), expected)
    assert torch.equal(to_mask_paper(labels, (6, 10), (8, 8)), expected)


def test_as_published_a_faint_trace_beats_what_is_there() -> None:
    labels = torch.tensor([[[0.9, 0.1], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])  # a tenth of an object, in a corner
    assert to_mask(labels, (8, 8)).sum() == 0
    assert to_mask_paper(labels, (8, 8), (4, 4))[0, 0] == 1
