"""The built-in world: sixteen procedural species with every annotation, rendered when asked for and never stored.

Knows numpy and Pillow only; exports write the official layouts that the other loaders of `vitscope.data` read.
"""

from vitscope.menagerie.captions import caption
from vitscope.menagerie.contact_sheet import annotate, contact_sheet
from vitscope.menagerie.export import SIZE, Amounts, Summary, export
from vitscope.menagerie.gallery import Pair, Shelf, encounters, pair, shelf
from vitscope.menagerie.pictures import Picture, SeenKeypoint, render
from vitscope.menagerie.scenes import Actor, Cover, Individual, Scene
from vitscope.menagerie.sketch import PARTS
from vitscope.menagerie.species import SPECIES, Species
from vitscope.menagerie.videos import film, play
from vitscope.menagerie.world import World

__all__ = [
    "PARTS",
    "SIZE",
    "SPECIES",
    "Actor",
    "Amounts",
    "Cover",
    "Individual",
    "Pair",
    "Picture",
    "Scene",
    "SeenKeypoint",
    "Shelf",
    "Species",
    "Summary",
    "World",
    "annotate",
    "caption",
    "contact_sheet",
    "encounters",
    "export",
    "film",
    "pair",
    "play",
    "render",
    "shelf",
]
