"""The exam of the zoo: what the taught networks can do on pictures that nobody was taught with.

Stands above everything that measures: it asks `tasks`, `features` and `attention`, and none of them knows of it.
"""
