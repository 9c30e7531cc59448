"""WHAT models learn to represent: pooled features of every layer, their similarity, residual streams and clusters.

Pure tensor functions first, the statistic that streams them second, in the same file. Imports models, data and the
shared modules of the package; never attention, tasks, study or report.
"""
