"""The sixteen species: each is one function that draws a creature from its proportions and its articulation."""

from __future__ import annotations

from vitscope.menagerie.species.bat import bat
from vitscope.menagerie.species.bird import bird
from vitscope.menagerie.species.butterfly import butterfly
from vitscope.menagerie.species.cat import cat
from vitscope.menagerie.species.crab import crab
from vitscope.menagerie.species.crocodile import crocodile
from vitscope.menagerie.species.elephant import elephant
from vitscope.menagerie.species.fish import fish
from vitscope.menagerie.species.giraffe import giraffe
from vitscope.menagerie.species.octopus import octopus
from vitscope.menagerie.species.penguin import penguin
from vitscope.menagerie.species.rabbit import rabbit
from vitscope.menagerie.species.snail import snail
from vitscope.menagerie.species.snake import snake
from vitscope.menagerie.species.species import BUILD, POSE, Species
from vitscope.menagerie.species.spider import spider
from vitscope.menagerie.species.turtle import turtle

__all__ = ["BUILD", "POSE", "SPECIES", "Species"]

SPECIES = (
    Species("snake", snake, ("green", "brown"), ("banded", "striped"), ("desert", "forest")),
    Species("bird", bird, ("blue", "red"), ("plain", "banded"), ("meadow", "forest")),
    Species("fish", fish, ("orange", "teal"), ("striped", "spotted"), ("sea", "sea")),
    Species(
        "spider",
        spider,
        ("black", "brown"),
        ("plain", "spotted"),
        ("night", "forest"),
        symmetric=True,
        turn=35.0,
    ),
    Species("giraffe", giraffe, ("yellow", "orange"), ("patched", "spotted"), ("savanna", "savanna")),
    Species("turtle", turtle, ("green", "teal"), ("spotted", "patched"), ("beach", "sea")),
    Species("rabbit", rabbit, ("white", "grey"), ("plain", "patched"), ("snow", "meadow")),
    Species("elephant", elephant, ("grey", "purple"), ("plain", "patched"), ("savanna", "desert")),
    Species("cat", cat, ("orange", "black"), ("striped", "patched"), ("meadow", "night")),
    Species("crab", crab, ("red", "orange"), ("plain", "spotted"), ("beach", "sea"), symmetric=True),
    Species("snail", snail, ("brown", "pink"), ("banded", "striped"), ("forest", "meadow")),
    Species(
        "butterfly",
        butterfly,
        ("yellow", "purple"),
        ("spotted", "banded"),
        ("meadow", "beach"),
        symmetric=True,
        turn=35.0,
    ),
    Species("octopus", octopus, ("purple", "pink"), ("spotted", "plain"), ("sea", "sea"), symmetric=True),
    Species("penguin", penguin, ("black", "blue"), ("plain", "plain"), ("snow", "snow")),
    Species("crocodile", crocodile, ("green", "teal"), ("banded", "spotted"), ("beach", "savanna")),
    Species("bat", bat, ("black", "purple"), ("plain", "patched"), ("night", "night"), symmetric=True),
)
