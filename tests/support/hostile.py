"""Files as an enemy would make them: bytes, texts and numbers that are changed at random, always in the same way.

Every function takes a `random.Random`, so that a case is known by its seed.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (0, -1, 1, 2, 1.5, -0.0, 1e-320, 255, 256, 2**31, 2**63, 2**64, -(2**63), 10**400, 1e308)
CONSTANTS: tuple[Any, ...] = (float("nan"), float("inf"), -float("inf"))
TEXTS = (
    "",
    " ",
    "0",
    "\0",
    "a\nb",
    "\x1b[31m",
    "\ud800",
    "\u202e",
    "=1+1",
    "[/x]",
    "$\\frac{$",
    "k" * 300,
    "~nosuchuser",
)
PATHS = (
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "/dev/zero",
    "C:\\x",
    "a/../../b",
    "\\\\host\\share",
    "k/" * 2500,
)
KINDS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, {"id": 1})
VALUES = (*NUMBERS, *CONSTANTS, *TEXTS, *PATHS, *KINDS)


def nested(random: Random) -> Any:
    """Brackets in brackets."""
    value: Any = 0
    for _ in range(random.choice((3, 40, 150))):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def evil_value(random: Random) -> Any:
    return nested(random) if random.random() < 0.05 else random.choice(VALUES)


def changed_bytes(content: bytes, random: Random) -> bytes:
    """Bytes flipped, cut, doubled, removed, zeroed or replaced by others."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        if not data:
            break
        place = random.randrange(len(data))
        end = min(len(data), place + random.choice((1, 4, 64, 4096)))
        kind = random.choice(("flip", "byte", "cut", "double", "remove", "zero", "ones", "noise", "swap"))
        if kind == "flip":
            data[place] ^= 1 << random.randrange(8)
        elif kind == "byte":
            data[place] = random.randrange(256)
        elif kind == "cut":
            del data[place:]
        elif kind == "double":
            data[place:place] = data[place:end]
        elif kind == "remove":
            del data[place:end]
        elif kind == "swap":
            other = random.randrange(len(data))
            data[place], data[other] = data[other], data[place]
        else:
            fill = {"zero": bytes(end - place), "ones": b"\xff" * (end - place), "noise": random.randbytes(end - place)}
            data[place:end] = fill[kind]
    return bytes(data)


def changed_value(value: Any, random: Random) -> Any:
    """Plain data with one thing in it, anywhere, replaced, removed, doubled or renamed."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        rest = {name: inner for name, inner in value.items() if name != key}
        kind = random.random()
        if kind < 0.1:
            return rest
        if kind < 0.15:
            return {**rest, str(evil_value(random)): value[key]}
        return {**value, key: changed_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        kind = random.random()
        if kind < 0.1:
            return value[:place] + value[place + 1 :]
        if kind < 0.2:
            return [*value, value[place]]
        return [*value[:place], changed_value(value[place], random), *value[place + 1 :]]
    return evil_value(random)


def json_text(value: Any) -> str:
    """JSON, in which infinity is sometimes a word that is not JSON and sometimes a number that is."""
    return json.dumps(value).replace("-Infinity", "-1e999").replace("Infinity", "1e999")


def toml_text(value: Any, path: str = "") -> str:
    """TOML of nested tables; what TOML has no word for stands as JSON has it, and makes the file invalid."""
    if not isinstance(value, dict):
        return _toml(value)
    tables = {k: v for k, v in value.items() if isinstance(v, dict) and v}
    lists = {k: v for k, v in value.items() if isinstance(v, list) and v and all(isinstance(i, dict) for i in v)}
    text = "".join(f"{json.dumps(k)} = {_toml(v)}\n" for k, v in value.items() if k not in tables and k not in lists)
    for key, inner in tables.items():
        text += f"[{path}{json.dumps(key)}]\n" + toml_text(inner, f"{path}{json.dumps(key)}.")
    for key, items in lists.items():
        for item in items:
            text += f"[[{path}{json.dumps(key)}]]\n" + toml_text(item, f"{path}{json.dumps(key)}.")
    return text


def _toml(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # nan, inf, -inf
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def evil_files(folder: Path, suffix: str = "") -> dict[str, Path]:
    """A dozen things that may lie where a file, or a folder, should be."""
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Path] = {}

    def place(name: str) -> Path:
        made[name] = folder / f"{name}{suffix}"
        return made[name]

    place("missing")
    place("empty").write_bytes(b"")
    place("zeros").write_bytes(bytes(4096))
    place("noise").write_bytes(Random(0).randbytes(4096))
    place("folder").mkdir(exist_ok=True)
    place("brackets").write_text("[" * 100_000)
    place("digits").write_text(f'{{"a": {"9" * 5000}}}')
    place("key").write_text(f'"{"k" * 900_000}" = 1')
    place("pickle").write_bytes(b"cos\nsystem\n(S'touch sprung'\ntR.")
    with place("sparse").open("wb") as file:
        file.truncate(50 << 30)
    os.mkfifo(place("pipe"))
    place("device").symlink_to("/dev/zero")
    place("loop").symlink_to(folder / f"loop{suffix}")
    made["user"] = Path("~nosuchuser/file")
    made["long"] = folder / ("k" * 300 + suffix)
    made["half"] = folder / f"\udcff[/x]{suffix}"
    return made
