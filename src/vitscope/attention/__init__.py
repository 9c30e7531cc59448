"""HOW a model processes information: where its heads look, how far, and what kind of head each is.

Each file holds a pure function on attention tensors and the statistic that streams it. Imports models and data.
Calling the module runs the whole study: `vitscope.attention(["dino-b16"], images="photos")`.
"""

from vitscope._callable import make_callable

make_callable(__name__, "vitscope.attention.study:attention")
