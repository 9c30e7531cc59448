"""HOW a model processes information: where its heads look, how far, and what kind of head each is.

Each file holds a pure function on attention tensors and the statistic that streams it; `analysis.py` and `saliency.py`
have the analyses. Imports models, data and core.
"""
