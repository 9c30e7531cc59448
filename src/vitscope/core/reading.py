"""Small files that somebody points to, read as if an enemy had written them.

A path may be a folder, a pipe that never ends or a file of 50 GB; a text may nest a thousand brackets; a number may
have a million digits; a name in an annotation may lead out of its folder. Each is decided here, once, and told in one
sentence. Whoever reads a text, TOML or JSON file, or a path out of one, comes through here.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tokenize import TokenError
from typing import Any, BinaryIO

from vitscope.core.errors import BadData, VitscopeError, shorten

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SMALL = 1 << 20  # bytes: study files, model cards, lists and tables are pages of text
DEEPEST = 32  # nested tables and arrays of a TOML file
MOST_DOTS = 5000  # on a line: the time to read a dotted key grows with the square of its parts
LONGEST_NAME, LONGEST_PATH = 255, 4000  # bytes that file systems take

Error = type[VitscopeError]
# What Python and the libraries raise when a file is not what it claims to be.
STRANGE: tuple[type[Exception], ...] = (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)
STRANGE += (AttributeError, EOFError, MemoryError, SyntaxError, TokenError)  # NumPy's headers are Python


def user_path(path: Path | str) -> Path:
    """A path as somebody typed it, with ~ resolved; told at once if no file system could have it."""
    try:
        found = Path(path).expanduser()
        if problem := path_problem(found):
            raise VitscopeError(f"the path {shorten(path)} {problem}: check it")
        found.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # whoever wants something there says what was expected
    except RuntimeError:
        raise VitscopeError(f"the path {shorten(path)} names a user that this machine does not know") from None
    except OSError as error:
        raise VitscopeError(f"{shorten(path)} cannot be read: {error.strerror}") from None
    except ValueError:
        raise VitscopeError(f"the path {shorten(path)} holds a character that no file name can have") from None
    return found


def path_inside(root: Path, name: object, *, source: Path | str) -> Path:
    """The path under `root` that an annotation file names: relative, and never leading out of it.

    Backslashes, as files made on Windows have them, count as separators.
    """
    if not isinstance(name, str):
        raise BadData(f"{source} has a value of type {type(name).__name__} where the name of a file should be")
    parts = PurePosixPath(name.replace("\\", "/"))
    problem = path_problem(name)
    if not parts.parts:
        problem = "is empty"
    elif parts.is_absolute() or ".." in parts.parts or re.match(r"[A-Za-z]:", name):
        problem = "lies outside its folder and is not safe to read"
    if problem:
        raise BadData(f"{source} names the file '{shorten(name, 60)}', which {problem}")
    return root / parts


def path_problem(path: Path | str) -> str:
    """Why no file system has such a path; nothing if one could.

    >>> path_problem("a/b.png"), path_problem("k" * 300)
    ('', 'is longer than a file name can be')
    """
    try:
        spelled = os.fsencode(path)
    except UnicodeEncodeError:
        return "holds half a character"
    if b"\0" in spelled:
        return "holds a zero byte"
    if len(spelled) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in spelled.split(b"/")):
        return "is longer than a file name can be"
    return ""


def open_regular(path: Path, *, most: int | None = None, error: Error = BadData) -> BinaryIO:
    """An open regular file of at most `most` bytes; folders, pipes and devices are told instead of waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise error(f"{shorten(path)} does not exist: check the path") from None
    except OSError as failure:
        raise error(f"{shorten(path)} cannot be read: {failure.strerror}") from None
    except ValueError:
        raise error(f"{shorten(path)} is not a path: check it") from None
    status = os.fstat(descriptor)
    problem = ""
    if stat.S_ISDIR(status.st_mode):
        problem = "is a folder: give the file itself"
    elif not stat.S_ISREG(status.st_mode):
        problem = "is not a regular file (a pipe or a device): copy its content to a file"
    elif most is not None and status.st_size > most:
        problem = f"has {_size(status.st_size)}, more than the {_size(most)} that such a file may have: check the path"
    if problem:
        os.close(descriptor)
        raise error(f"{shorten(path)} {problem}")
    return os.fdopen(descriptor, "rb")


def _size(count: int) -> str:
    """
    >>> _size(50 << 30), _size(1 << 20), _size(64 << 10)
    ('50 GiB', '1 MiB', '64 KiB')
    """
    shift, unit = next(((s, u) for s, u in ((30, "GiB"), (20, "MiB")) if count >> s), (10, "KiB"))
    return f"{count >> shift} {unit}"


def read_small_text(path: Path, *, most: int = SMALL, error: Error = BadData) -> str:
    """The text (UTF-8, with or without a mark at its start) of a regular file of at most `most` bytes."""
    try:
        with open_regular(path, most=most, error=error) as file:
            return file.read(most + 1).decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise error(f"{shorten(path)} is not a text in UTF-8 (byte {failure.start})") from None
    except OSError as failure:
        raise error(f"{shorten(path)} cannot be read: {failure.strerror}") from None


def read_lines(path: Path, *, most: int = SMALL) -> list[str]:
    """The lines of a text file, stripped, without empty ones."""
    return [line.strip() for line in read_small_text(path, most=most).splitlines() if line.strip()]


def read_toml(path: Path, *, most: int = SMALL, error: Error = VitscopeError) -> dict[str, Any]:
    """The content of a TOML file; see `parse_toml`."""
    return parse_toml(read_small_text(path, most=most, error=error), shorten(path), error=error)


def parse_toml(text: str, name: str, *, error: Error = VitscopeError) -> dict[str, Any]:
    """TOML to plain data of at most DEEPEST levels, with whole numbers of 64 bits as the format promises them."""
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise error(f"{name} has a line with more than {MOST_DOTS} dots: it is not a settings file")
    try:
        values = tomllib.loads(text)
        _check_plain(values)
    except (ValueError, RecursionError) as failure:
        why = "too many nested brackets" if isinstance(failure, RecursionError) else shorten(failure)
        raise error(f"{name} is not valid TOML: {why}") from None
    found: dict[str, Any] = values
    return found


def _check_plain(values: Any) -> None:
    """Breadth first, because a recursive walk would fall into what it looks for."""
    level = [values]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                raise ValueError("a whole number needs more than 64 bits")
        if not inner:
            return
        level = inner
    raise ValueError(f"tables and arrays are nested more than {DEEPEST} deep")


def read_json(path: Path, *, most: int, error: Error = BadData) -> Any:
    """The content of a JSON file. NaN and Infinity, which are not JSON, are refused.

    Numbers such as 1e999 still come out infinite: whoever uses a number takes it through `number`.
    """
    with open_regular(path, most=most, error=error) as file:
        try:
            start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
            if start[:1] not in (b"{", b"["):  # told before a gigabyte of zeros is read
                raise ValueError("it does not begin with a bracket")
            file.seek(0)
            return json.loads(file.read(most + 1).decode("utf-8-sig"), parse_constant=_no_constant)
        except (ValueError, RecursionError, MemoryError) as failure:
            why = {RecursionError: "too many nested brackets", MemoryError: "it needs too much memory"}
            raise error(f"{shorten(path)} is not valid JSON: {why.get(type(failure), shorten(failure, 80))}") from None
        except OSError as failure:
            raise error(f"{shorten(path)} cannot be read: {failure.strerror}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def number(value: object) -> float:
    """A finite number out of a file; a text, a truth value or infinity is none.

    >>> number(3), number(2.5)
    (3.0, 2.5)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"a value of type {type(value).__name__} stands where a number should be")
    try:
        if math.isfinite(found := float(value)):
            return found
    except OverflowError:
        pass
    raise ValueError("a number is not finite")


def whole(value: object) -> int:
    """A whole number out of a file; 3.0 is one, 3.5 is not.

    >>> whole(3.0)
    3
    """
    found = number(value)
    if found != int(found):
        raise ValueError(f"{found} stands where a whole number should be")
    return int(found)


@contextmanager
def told(what: Callable[[], str] | str, error: Error = BadData) -> Iterator[None]:
    """Around the reading of one file: whatever its content makes fail becomes one sentence that begins with `what`.

    The sentences of the checks inside go through as they are; this is for what no check foresaw.
    """
    try:
        yield
    except STRANGE as failure:
        said = what if isinstance(what, str) else what()
        raise error(f"{said}: {reason(failure)}") from failure


def reason(failure: BaseException) -> str:
    """What went wrong, in a few words: the message of an error, or its name if it says nothing.

    >>> reason(KeyError("width")), reason(ValueError("too few")), reason(MemoryError())
    ('width is missing', 'too few', 'it needs too much memory')
    """
    if isinstance(failure, MemoryError):
        return "it needs too much memory"
    if isinstance(failure, RecursionError):
        return "it is nested too deeply"
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    if isinstance(failure, KeyError) and failure.args and isinstance(failure.args[0], str):
        return f"{shorten(failure.args[0], 60)} is missing"
    lines = str(failure).strip().splitlines()
    return shorten(lines[0]) if lines and not isinstance(failure, LookupError) else type(failure).__name__
