"""The one way from images to numbers: plan, store, engines, evaluate, and the stage between models.

Imports attention, features and tasks (their analyses), models, data and core; is imported by findings, report and the
commands.
"""
