"""The population and its encounters, thrown by named dice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from vitscope.core.errors import VitscopeError
from vitscope.menagerie.colours import PALETTES, PATTERNS
from vitscope.menagerie.dice import Dice
from vitscope.menagerie.habitats import HABITATS
from vitscope.menagerie.scenes import Actor, Cover, Individual, Scene
from vitscope.menagerie.species import BUILD, POSE, SPECIES
from vitscope.menagerie.stance import footing, reach

SIZES = (0.58, 0.94)
"""How much of the picture's height a creature takes, from far to near."""
MARGIN = 0.05
"""How much of a resting creature the picture's edge may cut off."""


@dataclass(frozen=True)
class World:
    """A reproducible world. `correlation` is how often a species wears its usual colours, pattern and place.

    0 makes the world appearance-free: then nothing but shape tells species apart.
    """

    seed: int = 0
    correlation: float = 0.6

    def __post_init__(self) -> None:
        if not 0.0 <= self.correlation <= 1.0:
            raise VitscopeError(f"the correlation is {self.correlation}: choose a number from 0 to 1")

    def individual(self, population: str, number: int) -> Individual:
        """The number-th creature of a population; species take turns, so any run of numbers is balanced."""
        dice = Dice("menagerie", self.seed, "individual", population, number)
        kind = number % len(SPECIES)
        species = SPECIES[kind]
        return Individual(
            id=f"{population}-{number:05d}",
            species=kind,
            palette=self._pick(dice, species.palettes, [palette.name for palette in PALETTES]),
            pattern=self._pick(dice, species.patterns, PATTERNS),
            shift=(dice.below(37) - 18, dice.below(37) - 18, dice.below(37) - 18),
            build=dice.signs(BUILD),
            grain=(dice.uniform(3.0, 4.6), dice.uniform(0.0, 1.0), dice.uniform(0.0, 1.0)),
        )

    def scene(self, split: str, index: int, individual: Individual | None = None) -> Scene:
        """The index-th picture of a split, of one creature: a new one each time unless somebody is given."""
        who = individual or self.individual(split, index)
        dice = Dice("menagerie", self.seed, "scene", split, index)
        habitat = self._pick(dice, SPECIES[who.species].habitats, [habitat.name for habitat in HABITATS])
        actor = _met(who, dice)
        return self._staged(split, index, dice, habitat, (actor,))

    def conflict(self, split: str, index: int) -> tuple[Scene, int]:
        """The index-th picture of a creature in the palette and pattern of another species; and which that is.

        The other's look is none that its wearer is usually met in. They are met anywhere, so that the place says
        nothing. Of 240 pictures in a row each shows another pair of species.
        """
        kinds = len(SPECIES)
        wearer = self.individual(split, index)
        other = (wearer.species + 1 + index // kinds % (kinds - 1)) % kinds
        own = SPECIES[wearer.species]
        typical = World(self.seed, correlation=1.0)
        thrown = (typical.individual(f"{split}-look-{turn}", kinds * index + other) for turn in count())
        look = next(one for one in thrown if one.palette not in own.palettes or one.pattern not in own.patterns)
        dressed = replace(wearer, palette=look.palette, pattern=look.pattern, shift=look.shift, grain=look.grain)
        return World(self.seed, correlation=0.0).scene(split, index, dressed), other

    def gathering(self, split: str, index: int) -> Scene:
        """Two creatures of different species, smaller, one left and one right; they may overlap."""
        dice = Dice("menagerie", self.seed, "gathering", split, index)
        numbers = (2 * index, 2 * index + 1 + 2 * dice.below(len(SPECIES) // 2))
        pair = [self.individual(f"{split}-pair", number) for number in numbers]
        species = SPECIES[pair[0].species]
        habitat = self._pick(dice, species.habitats, [habitat.name for habitat in HABITATS])
        actors = tuple(_met(who, dice, scale=0.66, span=(0.5 * k, 0.5 + 0.5 * k)) for k, who in enumerate(pair))
        return self._staged(split, index, dice, habitat, actors)

    def _staged(self, split: str, index: int, dice: Dice, habitat: str, actors: tuple[Actor, ...]) -> Scene:
        covers: tuple[Cover, ...] = ()
        front = actors[-1]
        if dice.chance(0.25):
            x, y = front.place[0] + dice.uniform(-0.35, 0.35), front.place[1] + dice.uniform(0.2, 0.45)
            covers = (Cover(x, y, dice.uniform(0.1, 0.16)),)
        glow, warmth = dice.uniform(0.86, 1.08), dice.uniform(-0.05, 0.05)
        lowest = min(footing(actor)[1] for actor in actors)  # everybody is met above ground
        return Scene(
            name=f"{split}-{index:06d}",
            actors=actors,
            habitat=habitat,
            scenery=f"{self.seed}/{split}/{index}",
            horizon=dice.uniform(0.22, max(0.3, min(0.8, lowest - 0.04))),
            clutter=2 + dice.below(4),
            covers=covers,
            light=(glow * (1 + warmth), glow, glow * (1 - warmth)),
        )

    def _pick(self, dice: Dice, usual: tuple[str, str], all_names: Sequence[str]) -> str:
        likely = usual[0] if dice.chance(0.65) else usual[1]
        return likely if dice.chance(self.correlation) else dice.choice(all_names)


def _met(who: Individual, dice: Dice, scale: float = 1.0, span: tuple[float, float] = (0.0, 1.0)) -> Actor:
    """Somebody in some pose at some place of a square picture, between the sides `span`."""
    species = SPECIES[who.species]
    turn = dice.uniform(-species.turn, species.turn)
    stretch = dice.uniform(0.85, 1.12)
    left, top, right, bottom = reach(species, 1.0, turn, stretch)
    # Long thin creatures are met at closer range than round ones, so that all are about equally much to see.
    wide, tall = right - left, bottom - top
    longer = max(wide, tall)
    size = min(scale * dice.uniform(*SIZES) * 2 / (longer + (wide * tall) ** 0.5), 1.04 / longer)
    flip = not species.symmetric and dice.chance(0.5)
    if flip:
        left, right = -right, -left
    x = _thrown(dice, span, left * size, right * size)
    y = _thrown(dice, (0.0, 1.0), top * size, bottom * size)
    return Actor(who, dice.signs(POSE), (x, y), size, turn, flip, stretch)


def _thrown(dice: Dice, span: tuple[float, float], before: float, after: float) -> float:
    """A place from which something that reaches from `before` to `after` about it stays within the span."""
    return dice.uniform(*sorted((span[0] - before - MARGIN, span[1] - after + MARGIN)))
