"""The zoo: six networks of one architecture, taught on the same images, differing only in the teaching.

How they are taught, shipped and examined; the networks themselves ship with vitscope, in `src/vitscope/models/zoo`.
Stands above everything in vitscope, which knows nothing of it, and is no part of the package.
"""
