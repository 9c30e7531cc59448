"""Hostile input of every kind against every reader, with one oracle: one sentence, or a valid object."""
