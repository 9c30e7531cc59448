"""WHAT models learn to represent: pooled features of every layer, their similarity, residual streams and clusters.

Pure tensor functions first, the statistic that streams them second, in the same file. Imports models, data and the
shared modules of the package; never attention, tasks, study or report.
Calling the module runs the whole study: `vitscope.features(["dino-b16", "mae-b16"], images="photos")`.
"""

from vitscope._callable import make_callable

make_callable(__name__, "vitscope.features.study:features")
