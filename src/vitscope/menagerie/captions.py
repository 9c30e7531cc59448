"""What somebody would say about a scene."""

from __future__ import annotations

from vitscope.menagerie.dice import Dice
from vitscope.menagerie.habitats import HABITAT
from vitscope.menagerie.scenes import Scene
from vitscope.menagerie.species import SPECIES

NAMED = 0.9
"""How often a caption names the species. If colours alone told captions apart, nobody would learn shapes."""


def caption(scene: Scene) -> str:
    """One phrase. The species is nearly always said, colour, pattern and place each half of the time."""
    dice = Dice("menagerie", "caption", scene.scenery)
    said = [
        _creature(actor.individual.species, actor.individual.palette, actor.individual.pattern, dice)
        for actor in scene.actors
    ]
    phrase = " and ".join(said)
    return f"{phrase} {HABITAT[scene.habitat].phrase}" if dice.chance(0.5) else phrase


def _creature(species: int, palette: str, pattern: str, dice: Dice) -> str:
    words = []
    if pattern != "plain" and dice.chance(0.5):
        words.append(pattern)
    if dice.chance(0.5):
        words.append(palette)
    words.append(SPECIES[species].name if dice.chance(NAMED) else "animal")
    return f"{'an' if words[0][0] in 'aeiou' else 'a'} {' '.join(words)}"
