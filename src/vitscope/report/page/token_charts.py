"""Charts of what came after the paper: what draws attention, grows or becomes alike; which cue decides; what drifts."""

from __future__ import annotations

from vitscope.data.corruption import CORRUPTIONS, STRENGTHS
from vitscope.report.page.curves import CurveChart, Measure

SINKS = CurveChart(
    "sinks",
    "What draws attention, whoever looks",
    {
        "sink_ratio": Measure(
            "sink",
            "attention on the most attended token / on the median token",
            "At one, all tokens receive the same. At a hundred, one token is looked at by everybody: a sink, where "
            "heads put attention that they have no use for.",
            floor=None,
            log=True,
            line=1.0,
            line_title="all the same",
        ),
        "sink_place": Measure(
            "place of the sink",
            "share of images whose most attended token is of this kind",
            "Is the most attended token CLS, a register, or a patch? A patch that all tokens look at has usually "
            "given up showing its part of the image.",
        ),
        "attention_nmi": Measure(
            "dependence on the query",
            "mutual information of who looks and what is looked at",
            "At zero, all tokens look at the same places, whoever they are: attention has collapsed to one map. "
            "Contrastive teachings go there late, reconstruction does not.",
        ),
        "cls_self": Measure(
            "CLS on itself",
            "share of CLS's attention on CLS",
            "High, and CLS gathers little from the image: it keeps what it has.",
        ),
        "cls_entropy": Measure(
            "spread of CLS",
            "entropy of CLS's attention over patches, nats",
            "High, and CLS takes an average of the image; low, and it picks.",
        ),
        "patch_self": Measure(
            "patches on themselves",
            "share of a patch's attention on itself",
            "How much of its attention a patch token keeps at its own place.",
        ),
    },
    roles=("images", "masks"),
    variants={"patch": "a patch", "cls": "CLS", "register": "a register"},
)

WRITES = CurveChart(
    "writes",
    "Which heads write, and which matter",
    {
        "head_write": Measure(
            "share of what heads write",
            "norm of a head's write / sum over the heads of its layer",
            "Every dot is one head. Where dots lie together, heads of a layer add equally much to the stream; a "
            "dot far above the others is a head that does most of the work, and one near zero could be left out.",
            say="none",
            mean=False,
        ),
        "head_importance": Measure(
            "importance",
            "1 - cosine of the last feature, whole and without the head",
            "Every dot is one head: how far the last layer's feature moves if the head says of every image what it "
            "says on average. Near zero, nobody would miss the head.",
            say="none",
        ),
        "head_importance_knn": Measure(
            "k-NN lost",
            "accuracy with the head minus without",
            "The same for k-NN: above zero, images are recognised less well without the head.",
            say="none",
            floor=None,
            line=0.0,
            line_title="nothing lost",
        ),
    },
    roles=("images",),
    variants={"cls": "CLS", "patches": "patches", "mean": "mean patch"},
)

NORMS = CurveChart(
    "norms",
    "Tokens that grow out of proportion",
    {
        "norm_outliers": Measure(
            "outlier tokens",
            "share of patch tokens beyond the gap of norms",
            "Where norms fall into two hills, the far one is of outliers: tokens that no longer show their part of "
            "the image and spoil maps, dense features and similarity. Zero where there is no second hill.",
            say="peak",
        ),
        "norm_spread": Measure(
            "largest over median",
            "largest norm of an image's patches / their median norm",
            "At one, all patch tokens are equally long. At ten, one of them is ten times as long as the others.",
            floor=None,
            log=True,
        ),
        "token_norm": Measure(
            "norm",
            "norm of tokens",
            "How long tokens are after each block, before the final norm.",
            floor=None,
            log=True,
        ),
    },
    roles=("images",),
    variants={
        name: name.replace("cls", "CLS") for name in ("patches, median", "patches, 99th percentile", "cls", "registers")
    },
)

ALIKE = CurveChart(
    "alike",
    "Do tokens stay apart?",
    {
        "patch_patch_cosine": Measure(
            "patches among each other",
            "mean cosine of two patch tokens of an image",
            "Towards one, all patches say the same: features by which nothing can be found in the image.",
            floor=None,
        ),
        "cls_patch_cosine": Measure(
            "CLS and patches",
            "mean cosine of CLS with the patch tokens",
            "Rising with depth, patches turn into copies of the summary: dense features are being lost.",
            floor=None,
        ),
        "position_share": Measure(
            "share of position",
            "share of the variance of patch tokens that position explains",
            "How much of a patch token says where it is, rather than what it shows.",
        ),
        "patch_patch_without_position": Measure(
            "patches without position",
            "likeness of two patch tokens, position taken away",
            "The same question as for patches among each other, once what position alone explains is taken away: at "
            "zero, patches speak of their own place only; towards one, all of them speak of the whole image.",
            floor=None,
        ),
        "frequency": Measure(
            "fine over coarse",
            "log amplitude, highest frequency minus zero",
            "Falling, and layers blur: they keep what neighbouring patches have in common.",
            floor=None,
        ),
    },
    roles=("images",),
)

SPECTRUM = CurveChart(
    "spectrum",
    "The spectrum of features",
    {
        "rankme": Measure(
            "RankMe",
            "exponential of the entropy of singular values",
            "How many directions features use evenly: of two runs of one method, the higher one usually is better, "
            "and no label is needed to see it.",
        ),
        "spectrum_slope": Measure(
            "slope",
            "alpha of eigenvalues that fall like i^-alpha",
            "Steep, and a few directions hold everything; flat, and features are close to noise. Good ones lie near "
            "one.",
            line=1.0,
            line_title="alpha = 1",
        ),
    },
    roles=("images",),
    variants={"cls": "CLS token", "spatial": "mean spatial token", "patch": "single patch tokens"},
)

CUES = CurveChart(
    "cues",
    "Shape or texture?",
    {
        "shape_share": Measure(
            "share of shape",
            "of images decided by either cue, those decided by shape",
            "Each image has the shape of one class and the texture of another, and its neighbours decide. Near one, "
            "shape decides; near zero, texture does; at the dotted line, each as often as the other.",
            line=0.5,
        ),
        "shape_decisions": Measure(
            "decided by shape",
            "share of images taken for what their shape says",
            "How often an image is taken for what its shape says, among all answers.",
        ),
        "texture_decisions": Measure(
            "decided by texture",
            "share of images taken for what their texture says",
            "How often an image is taken for what its texture says, among all answers.",
        ),
    },
    roles=("conflict",),
    variants={"cls": "CLS token", "mean": "mean spatial token"},
)

DRIFT = CurveChart(
    "drift",
    "What moves when images are corrupted",
    {
        "robustness_drift": Measure(
            "drift",
            "1 - cosine of an image's feature and its corrupted self's",
            "At zero, a layer does not notice the corruption. Where curves fall with depth, later layers see through "
            "it; where they rise, it has been taken for something else.",
        ),
    },
    roles=("labelled",),
    variants={f"{name} {strength}": f"{name}, {strength} of 3" for name in CORRUPTIONS for strength in STRENGTHS[::-1]},
)
