"""Which charts of curves each chapter has. Adding a measure to the page is adding it here."""

from __future__ import annotations

from vitscope.report.page.curves import CurveChart, Measure
from vitscope.report.page.token_charts import ALIKE, CUES, DRIFT, NORMS, SINKS, SPECTRUM, WRITES

TOKENS = {
    "cls": "CLS token",
    "spatial": "spatial tokens",
    "all": "all tokens",
    "mean": "mean spatial token",
    "centre": "centre token",
    "pool": "pooling head",
}

HOW = (
    CurveChart(
        "distance",
        "How far tokens look",
        {
            "attention_distance": Measure(
                "attention distance",
                "attention distance",
                "Low, and a token looks at its neighbours; high, and it looks across the image. Every dot is one "
                "head: where dots spread from bottom to top, a layer does both at once.",
            )
        },
        roles=("images", "masks"),
        variants={"grid": "image edge = 1", "patch_free": "patch-free", "pixels": "pixels"},
    ),
    CurveChart(
        "spread",
        "What attention spreads over",
        {
            "prefix_mass": Measure(
                "attention on CLS",
                "share of spatial tokens' attention on prefix tokens",
                "How much of their attention the image's tokens give to CLS and its kin rather than to each other.",
            ),
            "entropy": Measure(
                "entropy",
                "entropy of attention rows, nats",
                "High entropy is attention spread evenly; low entropy is attention that has made up its mind.",
            ),
            "head_deviation": Measure(
                "difference between heads",
                "standard deviation over heads",
                "When heads of one layer all do the same, this goes to zero.",
            ),
            "position_deviation": Measure(
                "difference between positions",
                "standard deviation over source positions",
                "Near zero, every token looks at the same places: attention no longer depends on who is looking.",
            ),
        },
        roles=("images", "masks"),
    ),
    CurveChart(
        "looks",
        "The look of the maps",
        {
            "gini": Measure(
                "sparsity",
                "Gini coefficient of each image's map",
                "Zero is an even map; towards one, a handful of tokens takes it all.",
            ),
            "top_share": Measure(
                "mass on five tokens",
                "share of the mass on the five most attended tokens",
                "How much of a map five tokens hold.",
            ),
            "repetition": Measure(
                "repetition",
                "mean correlation with the other late maps",
                "In the last quarter of the layers: do all heads show the same map for the same image?",
                floor=None,
            ),
            "centre_lift": Measure(
                "pull of the centre",
                "mass in the middle, against an even map",
                "Above one, maps favour the middle of the image, where photographers put their object.",
                floor=None,
                line=1.0,
                line_title="even",
            ),
            "compactness": Measure(
                "compactness",
                "share of neighbours that are attended too",
                "High is one blob; low is scattered points.",
            ),
        },
        roles=("images", "masks"),
        variants=TOKENS,
    ),
    CurveChart(
        "saliency",
        "Does attention find the object?",
        {
            "saliency_best_head": Measure(
                "best head",
                "IoU with object masks, best head of each layer",
                "How well the most attended tokens of a layer's best head cover the object.",
                say="peak",
            ),
            "saliency_merged": Measure(
                "all heads merged",
                "IoU with object masks, heads merged",
                "The same for the mean map of all heads of a layer.",
                say="peak",
            ),
        },
        roles=("masks",),
        variants={
            "cls": "from CLS",
            "spatial": "from spatial tokens",
            "centre": "from the centre token",
            "pool": "from the pooling head",
        },
        floors=(("object_share", "all patches"), ("saliency_disc", "centred disc")),  # IoU of either for the object
    ),
    SINKS,
    WRITES,
)

WHAT = (
    CurveChart(
        "clusters",
        "Do features fall into classes by themselves?",
        {
            "purity": Measure(
                "purity",
                "cluster purity",
                "Features are clustered without labels; purity is the share that sits in a cluster of its own class.",
                say="peak",
            ),
            "nmi": Measure(
                "NMI",
                "normalised mutual information",
                "What a cluster's number tells about the class, from nothing (0) to everything (1).",
                say="peak",
            ),
            "ari": Measure(
                "ARI",
                "adjusted Rand index",
                "Agreement of clusters and classes about pairs, corrected for chance.",
                say="peak",
                floor=None,
            ),
        },
        roles=("images", "labelled", "masks"),
        variants=TOKENS | {"regions": "objects or parts", "regions, dense": "objects or parts, dense"},
        chance={"purity": "purity_chance"},
        band="band: lowest to highest seed",
    ),
    CurveChart(
        "residual",
        "What each block adds",
        {
            "skip_over_branch": Measure(
                "skip over branch",
                "norm of what is carried / norm of what is added",
                "High, and a block hardly changes what passes through it; near one, it rewrites it.",
                say="lowest",
                line=1.0,
                line_title="adds as much as it carries",
                log=True,
            ),
            "residual_cka": Measure(
                "likeness of skip and branch",
                "CKA of what is carried with what is added",
                "High, and a block repeats what is known already; low, and it brings something new.",
                say="lowest",
                floor=None,
            ),
        },
        roles=("images",),
        variants={
            f"{part}/{tokens}": f"{name}, {TOKENS[tokens]}"
            for part, name in (("attention", "attention"), ("mlp", "MLP"))
            for tokens in ("all", "spatial", "cls")
        },
    ),
    CurveChart(
        "rank",
        "How many directions features use",
        {
            "effective_rank": Measure(
                "effective rank",
                "effective rank",
                "The number of directions in which features really vary. A fall towards the end is a representation "
                "that narrows to its task.",
            ),
            "intrinsic_dimension": Measure(
                "intrinsic dimension",
                "intrinsic dimension",
                "The dimension of the surface that the images lie on, however it is curved.",
            ),
        },
        roles=("images",),
        variants=TOKENS,
        band="",
    ),
    NORMS,
    ALIKE,
    SPECTRUM,
)

WHY = (CUES, DRIFT)
