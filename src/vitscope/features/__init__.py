"""WHAT models learn to represent: pooled features of every layer, their similarity, residual streams and clusters.

Pure tensor functions first, the statistic that streams them second, in the same file; `analysis.py` and `objects.py`
have the analyses. Imports models, data and core.
"""
