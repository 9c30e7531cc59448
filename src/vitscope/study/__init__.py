"""The product: a study file becomes a plan of jobs, the jobs become results, the results become findings.

Imports attention, features, tasks, models and data; is imported by report and the commands.
"""
