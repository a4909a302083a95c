"""Numbers as people write them: money, percent, separators of thousands, decimal commas, units, yes and no."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: A number as programs write it.
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_MONEY = r"(?:[$€£¥₹₽₩]|(?i:usd|eur|gbp|chf|jpy|cny|inr|aud|cad|us\$))"
_SPACE = " \u00a0\u202f'’"  # what separates thousands besides a comma or a point
#: Units that may follow a number; a column of one unit is a column of numbers.
_WORDS = (
    "kg g mg lb lbs oz t km m cm mm mi miles ft in inch l ml gal s sec ms min mins h hr hrs hour hours day days week",
    "weeks month months mo year years yr yrs °c °f c f k kw kwh mw w v a hz khz mhz ghz b kb mb gb tb px mph km/h kmh",
    "m/s cc ccm hp ps bhp rpm nm n pa bar psi cal kcal j kj m2 m² sqm sqft ft2 ppm dpi mpg kmpl pcs",
)
_UNITS = [unit for words in _WORDS for unit in words.split()]
_UNIT = r"\s*(?i:" + "|".join(sorted(_UNITS, key=len, reverse=True)) + r")\.?$"
_TRUE = ("yes", "true", "y", "t", "on", "ja", "oui", "si", "sí", "sim", "vrai", "wahr", "da", "kyllä")
_FALSE = ("no", "false", "n", "f", "off", "nein", "non", "não", "faux", "falsch", "nej", "ei")
#: Forms of texts that are numbers, as words after the kind "number".
FORMS = ("", "comma", "unit", "comma unit", "truth")


def as_plain(texts: Any, form: str = "") -> Any:
    """Texts as those that programs write; null where a text is no number of the form."""
    text = pc.utf8_trim_whitespace(texts)
    nothing = pa.scalar(None, text.type)
    if form == "truth":
        low = pc.utf8_lower(text)
        known = {"1": (*_TRUE, "1"), "0": (*_FALSE, "0")}
        yes, no = (pc.is_in(low, value_set=pa.array(words, low.type)) for words in known.values())
        return pc.if_else(yes, pa.scalar("1", text.type), pc.if_else(no, pa.scalar("0", text.type), nothing))
    plain = pc.match_substring_regex(text, NUMBER)
    if "comma" not in form and "unit" not in form and pc.all(plain, min_count=0).as_py():
        return text
    if "unit" in form:
        text = pc.replace_substring_regex(text, _UNIT, "")
    text = pc.replace_substring_regex(text, r"^\(\s*([^()]*\d[^()]*)\)$", r"-\1")  # of bookkeepers
    text = pc.replace_substring_regex(text, "^\u2212", "-")
    text = pc.replace_substring_regex(text, rf"^([+-]?)\s*{_MONEY}\s*", r"\1")
    text = pc.replace_substring_regex(text, rf"\s*(?:{_MONEY}|%)$", "")
    point, thousands = (r"\.", f",{_SPACE}") if "comma" not in form else (",", f".{_SPACE}")
    grouped = pc.match_substring_regex(text, rf"^[+-]?\d{{1,3}}([{thousands}]\d{{3}})+({point}\d+)?$")
    text = pc.if_else(grouped, pc.replace_substring_regex(text, f"[{thousands}]", ""), text)
    if "comma" in form:
        # With a decimal comma a point that is left is none of thousands: 1.5 is no number there.
        text = pc.if_else(pc.match_substring(text, "."), nothing, pc.replace_substring(text, ",", "."))
    return pc.if_else(pc.match_substring_regex(text, NUMBER), text, nothing)


def number_form(known: Any, share: float) -> tuple[str | None, int]:
    """The form in which at least this share of the texts are numbers, None where there is none, and how many are."""
    counts = [len(known) - as_plain(known, form).null_count for form in FORMS]
    best = max(range(len(FORMS)), key=lambda k: (counts[k], -k))
    if counts[best] < share * len(known) or (FORMS[best] == "truth" and counts[best] < len(known)):
        return None, max(counts[:-1])  # words for yes and no are numbers only where all texts are
    return FORMS[best], counts[best]


def units_of(known: Any) -> list[str]:
    """The units that follow the numbers of texts, the most frequent first."""
    units = pc.struct_field(pc.extract_regex(known, rf"\d(?P<unit>{_UNIT})"), "unit").drop_null()
    counts = pc.utf8_lower(pc.utf8_trim(units, " .")).value_counts().to_pylist()
    return [row["values"] for row in sorted(counts, key=lambda row: (-row["counts"], row["values"]))]
