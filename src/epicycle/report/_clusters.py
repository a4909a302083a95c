"""The sections of a clustering: how many clusters and why, the clusters in words, and their pictures."""

from __future__ import annotations

from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, figure, px, span_of, tick_label

#: Colours of the clusters, from the largest on; what belongs to none is grey, and so are those beyond.
COLOURS = ("blue", "orange", "green", "purple", "vermilion", "sky", "pink", "olive", "brown", "teal")
CHANCE = "no better than chance"
_CLUSTERS, _CANDIDATES = 24, 40


def clustering_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about clusters; empty where there is none."""
    return mapping(record.get("clustering"))


def _colours(found: dict[str, Any]) -> dict[Any, str]:
    """A colour for each cluster, by size."""
    labels = [mapping(c).get("cluster") for c in items(found.get("clusters"))]
    real = [label for label in labels if (number(label) or 0) >= 0]
    return {label: COLOURS[i] for i, label in enumerate(real[: len(COLOURS)])}


def _name(label: Any) -> str:
    value = number(label)
    return "no cluster" if value is not None and value < 0 else f"cluster {whole(label)}"


def _hundredths(value: Any) -> str:
    """A number between -1 and 1, all with the same digits."""
    known = number(value)
    return DASH if known is None else f"{known:.2f}".replace("-", "\u2212")


# ---------------------------------------------------------------- head


def headline(found: dict[str, Any]) -> list[Html]:
    """The number of clusters and their worth, and the reasons."""
    verdict = text(found.get("verdict"), 60)
    words = {
        CHANCE: "but they are no better than chance: tables without clusters are cut as well",
        "unstable": "better than chance, but other rows would give other clusters",
        "fairly stable": "and they are fairly stable: subsamples of the rows give much the same clusters",
    }.get(verdict, f"and they are {verdict}: subsamples of the rows give the same clusters")
    first = joined(
        tag("strong", text(found.get("method"), 60)),
        " finds ",
        tag("strong", f"{whole(found.get('k'))} clusters"),
        f" in {whole(found.get('rows'))} rows, {words}.",
    )
    return [first]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    stability, silhouette = mapping(found.get("stability")), mapping(found.get("silhouette"))
    chance = text(found.get("verdict")) == CHANCE
    made = [
        ("Clusters", whole(found.get("k")), text(found.get("method"), 36), "" if chance else "good"),
        (
            "Stability",
            _hundredths(stability.get("adjusted_rand")),
            f"adjusted Rand index; {_hundredths(stability.get('by_chance'))} without clusters",
            "",
        ),
        ("Silhouette", _hundredths(silhouette.get("score")), "from -1 to 1", ""),
    ]
    agreement = mapping(found.get("agreement"))
    if agreement:
        under = f"adjusted Rand index with {text(agreement.get('column'), 30)}"
        made.append(("Agreement", _hundredths(agreement.get("adjusted_rand")), under, ""))
    return made


# ---------------------------------------------------------------- sections


def number_of_clusters(record: dict[str, Any]) -> Html | None:
    """Reasons, the evidence against the number of clusters, and all candidates."""
    found = clustering_of(record)
    if not found:
        return None
    reasons = [tag("li", text(reason, 400)) for reason in items(found.get("reasons"))]
    kind = "bad" if text(found.get("verdict")) == CHANCE else "good"
    verdict = tag("p", "Verdict: ", tag("strong", text(found.get("verdict"), 60)), class_=f"verdict {kind}")
    picture = _evidence(found)
    skipped = [text(name, 200) for name in items(found.get("skipped"))]
    return joined(
        verdict,
        tag("ul", reasons) if reasons else None,
        tag("div", picture, class_="figures") if picture else None,
        _candidates(found),
        tag("p", f"Not compared: {'; '.join(skipped[:20])}.", class_="quiet") if skipped else None,
    )


def _best(found: dict[str, Any]) -> int | None:
    """The candidate that was chosen; of several with its method and number the first."""
    rows = [mapping(row) for row in items(found.get("candidates"))]
    chosen = found.get("chosen")
    return next((i for i, row in enumerate(rows) if chosen is not None and row.get("name") == chosen), None)


def _candidates(found: dict[str, Any]) -> Html | None:
    rows = [mapping(row) for row in items(found.get("candidates"))]
    if not rows:
        return None
    best = _best(found)
    order = sorted(range(len(rows)), key=lambda i: (i != best, -(number(rows[i].get("beyond_chance")) or -9.0), i))
    kept = order[:_CANDIDATES]
    lines = [
        [
            clipped(rows[i].get("method"), 40),
            whole(rows[i].get("k")),
            *(_hundredths(rows[i].get(key)) for key in ("stability", "silhouette", "evidence", "by_chance")),
            _hundredths(rows[i].get("beyond_chance")),
        ]
        for i in kept
    ]
    heads = ["method", "clusters", "stability", "silhouette", "their product", "by chance", "beyond chance"]
    return joined(
        tag("h3", "Candidates"),
        tag(
            "p",
            "Stability is the adjusted Rand index of clusterings of two subsamples, over the rows that both have. By "
            "chance is the mean of the product in tables without clusters: numbers uniform along their principal axes, "
            "categories shuffled.",
        ),
        table(heads, lines, numeric=range(1, 7), label="candidates", marked=0 if best is not None else None),
        more(len(rows) - len(kept), "candidates"),
    )


def _evidence(found: dict[str, Any]) -> Html | None:
    """The product of stability and silhouette against k, for the method that was chosen, and the same by chance."""
    best = _best(found)
    if best is None:
        return None
    every = [mapping(row) for row in items(found.get("candidates"))]
    rows = sorted(
        (r for r in every if r.get("method") == every[best].get("method")), key=lambda r: number(r.get("k")) or 0
    )
    if len(rows) < 2:
        return None
    x, y, chance = ([number(row.get(key)) for row in rows] for key in ("k", "evidence", "by_chance"))
    ranges = [numbers(row.get("by_chance_range")) for row in rows]
    low, high = ([r[i] if len(r) > i else None for r in ranges] for i in (0, 1))
    canvas = Canvas(span_of(x, pad=0.04), span_of(y, low, high, [0.0]))
    canvas.axes("number of clusters", "stability × silhouette", x_ticks=9)
    canvas.band(x, low, high, "grey")
    canvas.line(x, chance, "grey", kind="dash")
    canvas.line(x, y, "blue")
    titles = [
        f"{whole(a)} clusters: {shown(b, 3)}, by chance {shown(c, 3)}" for a, b, c in zip(x, y, chance, strict=True)
    ]
    canvas.points(x, y, "blue", titles)
    at, value = number(every[best].get("k")), number(every[best].get("evidence"))
    if at is not None and value is not None:
        canvas.points([at], [value], "vermilion", [f"chosen: {whole(at)} clusters"], r=6)
    return figure(
        canvas,
        "evidence",
        f"Evidence of clusters, {text(every[best].get('method'), 40)}",
        "The number of clusters is chosen where the line is farthest above that of tables without clusters. The grey "
        "band is the range of these tables.",
        description="; ".join(titles[:12]),
        keys=[("blue", "this table"), ("vermilion round", "chosen"), ("grey area", "tables without clusters")],
    )


def clusters(record: dict[str, Any]) -> Html | None:
    """Pictures of the clusters, and each of them in words."""
    found = clustering_of(record)
    if not found:
        return None
    colours = _colours(found)
    rows = [mapping(row) for row in items(found.get("clusters"))]
    lines = []
    for row in rows[:_CLUSTERS]:
        label = row.get("cluster")
        share = number(row.get("share"))
        lines.append(
            [
                joined(
                    tag("i", class_=f"dot {colours.get(label, 'grey')}"),
                    " ",
                    tag("strong", _name(label)),
                    f": {text(row.get('summary'), 200)}",
                    tag("small", text(row.get("details"), 400), class_="params") if row.get("details") else None,
                ),
                whole(row.get("rows")),
                DASH if share is None else f"{share:.0%}",
                _hundredths(row.get("silhouette")),
            ]
        )
    drawn = [p for p in (_embedding(found, colours), _silhouettes(found, colours), _sizes(found, colours)) if p]
    return joined(
        table(
            ["cluster", "rows", "share", "silhouette"], lines, numeric=(1, 2, 3), label="clusters", class_="clusters"
        ),
        more(len(rows) - len(lines), "clusters"),
        tag("div", drawn, class_="figures") if drawn else None,
        _certificate(mapping(found.get("certificate"))),
    )


def _certificate(certificate: dict[str, Any]) -> Html | None:
    """The proof about the fit to all rows: that no small change improves it, not that no other start would."""
    if not certificate or text(certificate.get("kind")) == "none":
        return None
    words = (
        f"Certificate of the fit to all rows: {text(certificate.get('kind'), 60)} "
        f"{shown(certificate.get('value'), 2)}, tolerance {shown(certificate.get('tolerance'), 2)} "
        f"({text(certificate.get('meaning'), 300)})."
    )
    return tag("p", words, class_="quiet")


def _keys(found: dict[str, Any], colours: dict[Any, str]) -> list[tuple[str, str]]:
    labels = [mapping(c).get("cluster") for c in items(found.get("clusters"))]
    keys = [(f"{colours[label]} round", _name(label)) for label in labels if label in colours]
    others = len(labels) - len(keys)
    return [*keys, ("grey round", "no cluster, or a small one")] if others else keys


def _embedding(found: dict[str, Any], colours: dict[Any, str]) -> Html | None:
    """Rows on their first two principal axes, coloured by cluster."""
    drawn = mapping(found.get("embedding"))
    x, y, labels = numbers(drawn.get("x")), numbers(drawn.get("y")), items(drawn.get("cluster"))
    if not x or len(x) != len(y) or len(x) != len(labels):
        return None
    shares = [v or 0.0 for v in numbers(drawn.get("explained"))] + [0.0, 0.0]
    canvas = Canvas(span_of(x), span_of(y), height=330)
    canvas.axes(f"first principal axis ({shares[0]:.0%})", f"second ({shares[1]:.0%})")
    rows = items(drawn.get("row")) or list(range(len(x)))
    for label in dict.fromkeys(labels):
        at = [i for i, other in enumerate(labels) if other == label]
        titles = [f"row {whole(rows[i])}, {_name(label)}" for i in at]
        canvas.points([x[i] for i in at], [y[i] for i in at], colours.get(label, "grey"), titles, r=2.7)
    return figure(
        canvas,
        "embedding",
        "The rows on two axes",
        f"The two directions in which the rows differ most show {shares[0] + shares[1]:.0%} of their variance; "
        "clusters that overlap here may be apart in other directions.",
        description=f"{len(x)} rows on two principal axes, coloured by cluster.",
        keys=_keys(found, colours),
    )


def _silhouettes(found: dict[str, Any], colours: dict[Any, str]) -> Html | None:
    """Silhouettes of the rows of every cluster, falling."""
    outlines = [mapping(o) for o in items(found.get("outlines"))][:_CLUSTERS]
    values = [numbers(o.get("values")) for o in outlines]
    if not any(v is not None for part in values for v in part):
        return None
    total = sum(number(o.get("rows")) or 0.0 for o in outlines) or 1.0
    height = 330.0
    canvas = Canvas(span_of([0.0, 1.0], *values, pad=0.02), (0, 1), height=height, left=12)
    for tick in canvas.x.ticks():
        canvas.put("line", x1=canvas.x(tick), x2=canvas.x(tick), y1=12, y2=height - 44, class_="grid")
        canvas.words(canvas.x(tick), height - 27, tick_label(tick), anchor="middle", class_="tick")
    canvas.words(WIDTH / 2, height - 6, "silhouette", anchor="middle")
    room, gap, zero = height - 58.0, 5.0, canvas.x(0.0)
    scale, top = (room - gap * (len(outlines) - 1)) / total, 12.0
    for outline, line in zip(outlines, values, strict=True):
        rows, label = number(outline.get("rows")) or 0.0, outline.get("cluster")
        places = [v or 0.0 for v in numbers(outline.get("at"))]
        known = [(top + (i + 0.5) * scale, canvas.x(v)) for i, v in zip(places, line, strict=False) if v is not None]
        if known:
            tall = top + rows * scale
            edge = [(top, known[0][1]), *known, (tall, known[-1][1])]
            path = [f"{px(zero)},{px(top)}", *(f"{px(v)},{px(y)}" for y, v in edge), f"{px(zero)},{px(tall)}"]
            canvas.put("polygon", points=" ".join(path), class_=f"bar {colours.get(label, 'grey')}", title=_name(label))
        top += rows * scale + gap
    canvas.put("line", x1=zero, x2=zero, y1=12, y2=height - 44, class_="axis")
    mean = number(mapping(found.get("silhouette")).get("score"))
    if mean is not None:
        canvas.put("line", x1=canvas.x(mean), x2=canvas.x(mean), y1=12, y2=height - 44, class_="line dash ink")
    return figure(
        canvas,
        "silhouettes",
        "Silhouettes",
        "Every row is a line, the rows of a cluster below each other: near 1 it lies well inside its cluster, near 0 "
        f"between two, below 0 nearer to another. The dashed line is the mean, {_hundredths(mean)}.",
        description=f"Silhouettes of {len(outlines)} clusters, mean {_hundredths(mean)}.",
    )


def _sizes(found: dict[str, Any], colours: dict[Any, str]) -> Html | None:
    """Bars with the rows of every cluster."""
    rows = [mapping(c) for c in items(found.get("clusters"))][:_CLUSTERS]
    sizes = [number(row.get("rows")) for row in rows]
    if not sizes:
        return None
    height = 20.0 + 24 * len(rows) + 30
    canvas = Canvas((0, max(v or 0.0 for v in sizes) * 1.02), (0, 1), height=height, left=84)
    for tick in canvas.x.ticks():
        canvas.put("line", x1=canvas.x(tick), x2=canvas.x(tick), y1=8, y2=height - 40, class_="grid")
        canvas.words(canvas.x(tick), height - 24, whole(tick), anchor="middle", class_="tick")
    canvas.words((canvas.x.start + canvas.x.stop) / 2, height - 5, "rows", anchor="middle")
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        y, label = 12.0 + 24 * i, row.get("cluster")
        canvas.words(77, y + 12, _name(label), anchor="end", class_="tick")
        wide = canvas.x(size or 0.0) - canvas.x(0.0)
        colour = colours.get(label, "grey")
        title = f"{_name(label)}: {whole(size)} rows"
        canvas.put("rect", x=canvas.x(0.0), y=y, width=max(wide, 0.6), height=16.0, class_=f"bar {colour}", title=title)
    return figure(
        canvas,
        "sizes",
        "Sizes",
        "The number of rows in each cluster.",
        description=", ".join(f"{_name(r.get('cluster'))}: {whole(v)} rows" for r, v in zip(rows, sizes, strict=True)),
    )
