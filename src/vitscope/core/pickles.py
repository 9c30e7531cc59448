"""How large a pickle becomes, found without loading it.

A pickle is a program that puts objects into objects. A few bytes can put a tuple twice into a tuple, forty times over:
it takes no memory, but whoever hashes it, prints it or walks through it never comes to an end, the unpickler itself
first of all, when the tuple is the key of a dictionary. So the program is followed here with empty boxes in place of
objects; its boxes, written out in full, must be fewer than a bound, and none may contain itself.
"""

from __future__ import annotations

import pickletools
from io import BytesIO
from typing import Any

MOST_OBJECTS = 5_000_000  # written out in full
MOST_OPERATIONS = 1_000_000  # a few seconds; the training state of a large network has some ten thousand

_STACK = {op.name: (op.stack_before, op.stack_after) for op in pickletools.opcodes}
_PUT = ("PUT", "BINPUT", "LONG_BINPUT")
_GET = ("GET", "BINGET", "LONG_BINGET")
_EMPTY = ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "LIST", "DICT", "INST")  # can be filled later
_INTO = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")  # change what is already on the stack


class EndlessPickle(ValueError):
    """A pickle that would never be read to its end."""


def check_pickle(file: BytesIO) -> None:
    """Follow one pickle, from where `file` stands to its end; ValueError if it is damaged, endless or too large.

    file: bytes in memory, so that a length that is only promised is noticed and not reserved.
    """
    boxes: list[list[int]] = [[]]  # what each box holds; box 0 stands for everything that holds nothing
    stack: list[int | None] = []  # None is a mark
    memo: dict[int, int] = {}
    for count, (code, argument, _) in enumerate(pickletools.genops(file)):
        if count > MOST_OPERATIONS:
            raise EndlessPickle(f"it has more than {MOST_OPERATIONS:,} names and numbers")
        name = code.name
        if name in _PUT:
            memo[int(argument or 0)] = _top(stack)
        elif name == "MEMOIZE":
            memo[len(memo)] = _top(stack)
        elif name in _GET:
            if argument not in memo:
                raise ValueError("it refers to what it does not hold")
            stack.append(memo[argument])
        elif name == "MARK":
            stack.append(None)
        elif name == "DUP":
            stack.append(_top(stack))
        elif name not in ("PROTO", "FRAME", "STOP"):
            before, after = _STACK[name]
            taken = _take(stack, before)
            if name in _INTO:
                into = taken.pop(0)
                if into == 0 and any(taken):  # a thing that holds nothing, such as a class, is given attributes
                    into = _new(boxes)
                if into:
                    boxes[into] += taken
                stack.append(into)
            elif after:
                stack.append(_new(boxes, taken) if taken or name in _EMPTY else 0)
    _check_size(boxes)


def _new(boxes: list[list[int]], content: list[int] | None = None) -> int:
    boxes.append(content or [])
    return len(boxes) - 1


def _top(stack: list[int | None]) -> int:
    if not stack or stack[-1] is None:
        raise ValueError("it takes what is not there")
    return stack[-1]


def _take(stack: list[int | None], wanted: list[Any]) -> list[int]:
    """Remove from the stack what an operation takes; a mark ends a list of any length."""
    kinds = [kind.name for kind in wanted]
    fixed = kinds.index("mark") if "mark" in kinds else len(kinds)
    items: list[int] = []
    if fixed < len(kinds):
        while stack and (item := stack.pop()) is not None:
            items.append(item)
        items.reverse()
    for _ in range(fixed):
        items.insert(0, _top(stack))
        stack.pop()
    return items


def _check_size(boxes: list[list[int]]) -> None:
    """The size of every box, written out in full; each is visited once, without recursion."""
    size = [0] * len(boxes)  # 0: not known yet, -1: being visited
    for first in range(len(boxes)):
        path = [(first, iter(boxes[first]))] if size[first] == 0 else []
        while path:
            box, rest = path[-1]
            size[box] = -1
            inner = next((item for item in rest if size[item] <= 0), None)
            if inner is not None:
                if size[inner] == -1:
                    raise EndlessPickle("it holds itself")
                path.append((inner, iter(boxes[inner])))
                continue
            size[box] = 1 + sum(size[item] for item in boxes[box])
            if size[box] > MOST_OBJECTS:
                raise EndlessPickle("a few of its bytes stand for more objects than memory can hold")
            path.pop()
