"""What every room shares: errors, digests, files, progress, devices, intervals, statistics, analyses and results.

Imports nothing of vitscope but itself.
"""
