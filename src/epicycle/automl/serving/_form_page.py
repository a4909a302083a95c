"""The page of a server: a form with one field for each column, the prediction, and what each column adds to it."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from epicycle.automl.serving._row_schema import Field, RowSchema
from epicycle.report._markup import Html, tag
from epicycle.report._plain import text

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2027; --paper: #fff; --quiet: #5a6472; --rule: #cfd5dd; --plus: #0072b2;
  --minus: #d55e00; --panel: #f5f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --paper: #14171b; --quiet: #a3adb9; --rule: #414a55;
  --plus: #56b4e9; --minus: #f0813a; --panel: #1d2127; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
p { margin: 0 0 1rem; } .quiet, small { color: var(--quiet); font-size: .875rem; }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .75rem 1.25rem; }
label { display: block; font-size: .875rem; }
input { width: 100%; font: inherit; padding: .4rem .5rem; border: 1px solid var(--rule); border-radius: .3rem;
  background: var(--paper); color: var(--ink); }
input:focus-visible, button:focus-visible { outline: 2px solid var(--plus); outline-offset: 1px; }
button { font: inherit; margin-top: 1.25rem; padding: .5rem 1.5rem; border: 0; border-radius: .3rem;
  background: var(--plus); color: var(--paper); cursor: pointer; }
#answer { margin-top: 1.75rem; padding: 1.25rem; background: var(--panel); border-radius: .5rem; }
#prediction { font-size: 1.5rem; font-weight: 650; margin: 0 0 .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td { padding: .2rem .5rem .2rem 0; } td.n { text-align: right; font-variant-numeric: tabular-nums; width: 6rem; }
td.bar { width: 45%; } meter { width: 100%; }
.track { position: relative; height: .8rem; } .track i { position: absolute; top: 0; bottom: 0; border-radius: 2px; }
.plus { background: var(--plus); } .minus { background: var(--minus); } .zero { width: 1px; background: var(--quiet); }
"""

_SCRIPT = """
"use strict";
const form = document.getElementById("row");
const answer = document.getElementById("answer");
const shown = value => typeof value === "number"
  ? value.toLocaleString("en", {maximumSignificantDigits: 4}) : String(value);
function element(name, parent, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}
function value(input) {
  const given = input.value.trim();
  if (given === "") return null;
  const type = input.dataset.type;
  if (type === "number" || type === "integer") {
    const number = Number(given);
    return Number.isNaN(number) ? given : number;
  }
  if (type === "boolean") return given === "true" ? true : given === "false" ? false : given;
  return input.value;
}
function explain(found, parent) {
  element("p", parent, "From " + shown(found.start) + " of a typical row to " + shown(found.end) + ": " +
    "what each column adds to " + found.of + ".", "quiet");
  const table = element("table", parent);
  const most = Math.max(...found.contributions.map(c => Math.abs(c.value)), 1e-300);
  for (const c of found.contributions.slice(0, 20)) {
    const small = Math.abs(c.value) < 1e-4 * most;
    const line = element("tr", table);
    element("td", line, c.field);
    element("td", line, small ? "0" : (c.value > 0 ? "+" : "") + shown(c.value), "n");
    const track = element("div", element("td", line, undefined, "bar"), undefined, "track");
    const part = element("i", track, undefined, c.value > 0 ? "plus" : "minus");
    const size = 50 * Math.abs(c.value) / most;
    part.style.left = (c.value > 0 ? 50 : 50 - size) + "%";
    part.style.width = size + "%";
    element("i", track, undefined, "zero").style.left = "50%";
  }
}
form.addEventListener("submit", async event => {
  event.preventDefault();
  const row = [...form.querySelectorAll("input")].map(value);
  answer.hidden = false;
  answer.replaceChildren();
  try {
    const response = await fetch("explain", {method: "POST", headers: {"content-type": "application/json"},
      body: JSON.stringify({rows: [row]})});
    const found = await response.json();
    if (!response.ok) { element("p", answer, found.error.message).id = "prediction"; return; }
    const p = found.prediction;
    element("p", answer, shown(p.prediction)).id = "prediction";
    if (p.interval) element("p", answer, "between " + shown(p.interval.lower) + " and " + shown(p.interval.upper) +
      " with probability " + p.interval.level);
    for (const [name, share] of Object.entries(p.probabilities || {}).sort((a, b) => b[1] - a[1]).slice(0, 10))
      element("p", answer, "p(" + name + ") = " + shown(share), "quiet");
    explain(found.explanation, answer);
  } catch (error) {
    element("p", answer, "The server does not answer: " + error.message).id = "prediction";
  }
});
"""


def form_page(name: str, schema: RowSchema, target: str | None) -> tuple[str, str]:
    """The page, and the content security policy that goes with it: only its own style and script."""
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{_digest(_SCRIPT)}'; img-src data:; connect-src 'self'; form-action 'none'; "
        "base-uri 'none'"
    )
    what = f"Predict {text(target, 60)}" if target else "Predict a row"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{what} - epicycle"),
        tag("link", rel="icon", href="data:,"),
        Html(f"<style>{_STYLE}</style>"),
    ]
    fields = tag("div", [_input(field, i) for i, field in enumerate(schema.fields)], class_="columns")
    body = [
        tag("h1", what),
        tag("p", f"{text(name, 80)}. An empty field is an unknown value. ", _links(), class_="quiet"),
        tag("form", fields, tag("button", "Predict", type="submit"), id="row"),
        tag("section", id="answer", hidden=True, aria_live="polite"),
        Html(f"<script>{_SCRIPT}</script>"),
    ]
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n", policy


def _links() -> list[Html]:
    return [joint for name in ("schema", "health", "metrics") for joint in (tag("a", name, href=name), Html(" "))]


def _input(field: Field, i: int) -> Html:
    listed = f"levels-{i}" if field.levels else None
    hint = "" if field.json_type != "boolean" else "true or false"
    options: dict[str, Any] = {"value": f"{field.typical:.6g}"} if field.typical is not None else {}
    return tag(
        "label",
        text(field.name, 60),
        tag("input", data_type=field.json_type, list=listed, placeholder=hint or None, autocomplete="off", **options),
        tag("datalist", [tag("option", value=level) for level in field.levels], id=listed) if listed else None,
    )


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
