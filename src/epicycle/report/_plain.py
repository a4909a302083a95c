"""Conversion of records to plain data, and of plain data to short, printable text."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

DASH = "–"
#: Nesting depth beyond which plain data is replaced by dots; deeper records are cyclic.
_MAX_DEPTH = 40
# Control characters and halves of surrogate pairs have no place in a page; tabs and line ends do.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def plain(value: Any, depth: int = 0) -> Any:
    """`value` in the types of JSON: None for numbers that are not finite, its text for an unknown object."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > _MAX_DEPTH:
        return "..."
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), depth)
    if isinstance(value, Mapping):
        return {str(key): plain(member, depth + 1) for key, member in value.items()}
    return _plain_object(value, depth)


def _plain_object(value: Any, depth: int) -> Any:
    """Objects that describe themselves, data classes, bytes, sets and other iterables."""
    if callable(to_dict := getattr(value, "to_dict", None)) and not isinstance(value, type):
        return plain(to_dict(), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(holds := getattr(value, "holds", None), bool):
            fields["holds"] = holds
        return plain(fields, depth + 1)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, set | frozenset):
        return sorted((plain(member, depth + 1) for member in value), key=repr)
    if isinstance(value, Iterable):
        return [plain(member, depth + 1) for member in value]
    return str(value)


def shortened(value: Any, most: int) -> Any:
    """Plain data in which no text is longer than `most`."""
    if isinstance(value, str):
        return text(value, most)
    if isinstance(value, dict):
        return {(text(key, most) if len(key) > most else key): shortened(v, most) for key, v in value.items()}
    return [shortened(member, most) for member in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- of plain data


def mapping(value: Any) -> dict[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """`value` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """`value` as a finite float, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def numbers(value: Any) -> list[float | None]:
    """Every member of a list as a number or None."""
    return [number(member) for member in items(value)]


def text(value: Any, most: int = 300) -> str:
    """`value` as one piece of printable text of at most so many characters."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return brief(value)
    if isinstance(value, dict):
        value = ", ".join(f"{key}={text(member, 40)}" for key, member in list(value.items())[:40])
    elif isinstance(value, list):
        value = ", ".join(text(member, 40) for member in value[:40]) + (", ..." if len(value) > 40 else "")
    found = _UNPRINTABLE.sub("\ufffd", str(value)[: most + 1])
    return found if len(found) <= most else found[: most - 3].rstrip() + "..."


def shown(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits, in groups of three; a dash where there is none."""
    found = number(value)
    if found is None:
        return DASH
    if found == 0:
        return "0"
    if found.is_integer() and abs(found) < 1e15:
        return f"{int(found):,}"
    if abs(found) >= 1e6 or abs(found) < 1e-4:
        mantissa, _, exponent = f"{found:.{digits - 1}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(found))))
    return f"{found:,.{places}f}"


def brief(value: Any, digits: int = 4) -> str:
    """A number without the zeros at its end, which say nothing outside a table."""
    found = shown(value, digits)
    return found.rstrip("0").rstrip(".") if "." in found and "e" not in found else found


def alike(values: Iterable[float | None], digits: int = 3) -> Callable[[float], str]:
    """Numbers of one column or figure, all with the decimals that give the largest so many significant digits."""
    largest = max((abs(v) for v in values if v is not None), default=0.0)
    if not 1e-4 <= largest < 1e6:
        return lambda value: shown(value if abs(value) > 1e-9 * largest else 0.0, digits)
    places = max(0, digits - 1 - math.floor(math.log10(largest)))
    return lambda value: f"{round(value, places) + 0.0:,.{places}f}"


def percent(value: Any) -> str:
    """A share in percent, with one decimal below a tenth."""
    found = number(value)
    if found is None:
        return DASH
    words = f"{found:.1%}" if abs(found) < 0.0995 or 0.99 < found < 1 else f"{found:.0%}"
    return words.replace(".0%", "%")


def whole(value: Any) -> str:
    """A count, in groups of three."""
    found = number(value)
    return DASH if found is None else shown(round(found))
