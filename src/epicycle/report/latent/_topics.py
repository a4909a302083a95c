"""The sections of topics: their words and sizes, shares over time, documents, the number of topics, the certificate."""

from __future__ import annotations

from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, figure, span_of
from epicycle.report.latent import _convergence

_TOPICS, _DRAWN_OVER, _WORDS, _LISTED, _GROUPS = 60, 12, 10, 30, 24
_NAME, _ROW, _TOP = 132.0, 19.0, 14.0  # of bars: width of the names, height of a row, above the first


def topics_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about topics; empty where there is none."""
    return mapping(record.get("topics"))


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(row) for row in items(found.get("topics"))]


def _percent(value: Any) -> str:
    known = number(value)
    return DASH if known is None else f"{known:.1%}"


def _words(row: dict[str, Any], most: int) -> str:
    return ", ".join(text(word, 24) for word in items(row.get("words"))[:most])


# ---------------------------------------------------------------- head


def headline(found: dict[str, Any]) -> list[Html]:
    """The conclusion, and on what it rests."""
    words = text(found.get("verdict"), 400)
    how = (
        "Perplexity is of half of the words in a fifth of the documents, predicted from the other half: the number of "
        "words among which a prediction is as good as a guess."
    )
    return [tag("strong", f"{words[:1].upper()}{words[1:]}."), joined(how)]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    counts, rows = mapping(found.get("counts")), _rows(found)
    value, alone = number(found.get("perplexity")), number(found.get("unigram"))
    better = value is not None and alone is not None and value < alone
    made = [
        ("Topics", whole(len(rows)), f"of {whole(counts.get('documents'))} documents", "main"),
        ("Perplexity", whole(value), f"{whole(alone)} by the frequencies of words alone", "good" if better else ""),
        ("Words", whole(counts.get("words")), f"of {whole(counts.get('terms'))} terms", ""),
    ]
    known = [c for c in (number(row.get("coherence")) for row in rows) if c is not None]
    if known:
        under = "mean, from -1 to 1: how often words of a topic meet"
        made.append(("Coherence", f"{sum(known) / len(known):.2f}".replace("-", "\u2212"), under, ""))
    return made


# ---------------------------------------------------------------- sections


def topics(record: dict[str, Any]) -> Html | None:
    """Sizes of the topics, and the words of each."""
    found = topics_of(record)
    rows = _rows(found)
    if not rows:
        return None
    counts = mapping(found.get("counts"))
    names = [f"{i}  {_words(row, 2)}" for i, row in enumerate(rows, 1)]
    sizes = _bars(
        "sizes",
        "Sizes",
        names[:_TOPICS],
        [number(row.get("share")) or 0.0 for row in rows[:_TOPICS]],
        "Shares of the topics in all words.",
        percent=True,
    )
    left = number(counts.get("left_out")) or 0
    note = f"{whole(left)} rows without such words are left out." if left else None
    return joined(
        tag(
            "p",
            "A topic is a distribution of words, and every document mixes topics. Bars are the probabilities of the "
            "first words; those named below are the ones that set a topic apart. Topics are numbered by size.",
        ),
        tag("div", sizes, [_topic(i, row) for i, row in enumerate(rows[:_TOPICS], 1)], class_="figures"),
        more(len(rows) - _TOPICS, "topics"),
        tag("p", note, class_="quiet") if note else None,
    )


def _topic(i: int, row: dict[str, Any]) -> Html:
    words = [text(word, 40) for word in items(row.get("words"))][:_WORDS]
    values = [value or 0.0 for value in numbers(row.get("probabilities"))][:_WORDS]
    apart = ", ".join(text(word, 24) for word in items(row.get("distinctive"))[:8])
    coherence = shown(row.get("coherence"), 2).replace("-", "\u2212")
    caption = f"{apart}. Coherence {coherence}; the largest topic of {whole(row.get('documents'))} documents."
    title = f"Topic {i}: {_percent(row.get('share'))} of the words"
    return _bars(f"topic-{i}", title, words[: len(values)], values[: len(words)], caption)


def _bars(
    name: str,
    title: str,
    names: list[str],
    values: list[float | None] | list[float],
    caption: str,
    *,
    percent: bool = False,
) -> Html:
    """Horizontal bars with their names on the left."""
    top = max((v or 0.0 for v in values), default=0.0) or 1.0
    canvas = Canvas((0.0, top), (0.0, 1.0), height=_TOP + _ROW * max(len(names), 1), left=_NAME, right=54)
    for i, (label, value) in enumerate(zip(names, values, strict=True)):
        y = _TOP + _ROW * i
        canvas.words(_NAME - 7, y, text(label, 19), anchor="end", class_="name")
        if value is None:
            continue
        end = canvas.x(value)
        spelt = _percent(value) if percent else shown(value, 2)
        canvas.put(
            "rect",
            x=_NAME,
            y=y - 9.0,
            width=max(end - _NAME, 0.6),
            height=11.0,
            class_="bar blue",
            title=f"{text(label, 60)}: {spelt}",
        )
        canvas.words(min(end + 5, WIDTH - 50), y, spelt, class_="tick")
    return figure(canvas, name, title, caption, description=f"{len(names)} bars.")


def over(record: dict[str, Any]) -> Html | None:
    """Shares of the topics in groups of documents."""
    found = topics_of(record)
    given = mapping(found.get("over"))
    labels, shares = [text(label, 40) for label in items(given.get("labels"))][:_GROUPS], items(given.get("shares"))
    rows = _rows(found)
    if not labels or not rows:
        return None
    documents = [value or 0.0 for value in numbers(given.get("documents"))][: len(labels)]
    documents += [0.0] * (len(labels) - len(documents))
    in_time = bool(given.get("in_time")) and len(labels) > 1
    pictures = []
    for i, (row, values) in enumerate(zip(rows, shares, strict=False), 1):
        if i > _DRAWN_OVER:
            break
        known = numbers(values)[: len(labels)]
        known += [None] * (len(labels) - len(known))
        title = f"Topic {i}: {_words(row, 3)}"
        pictures.append(
            _line(f"over-{i}", title, labels, known, documents)
            if in_time
            else _bars(f"over-{i}", title, labels, known, "Share of the words of a group.", percent=True)
        )
    left = number(given.get("missing")) or 0
    drawn = f"The {len(pictures)} largest topics. " if len(rows) > len(pictures) else ""
    missing = f" {whole(left)} documents have no value." if left else ""
    return joined(
        tag(
            "p", f"{drawn}Shares of the words of all documents of a group, by {text(given.get('column'), 60)}.{missing}"
        ),
        tag("div", pictures, class_="figures"),
        more(len(rows) - len(pictures), "topics"),
    )


def _line(name: str, title: str, labels: list[str], values: list[float | None], documents: list[float]) -> Html:
    x: list[float | None] = [float(i) for i in range(len(labels))]
    percent = [None if v is None else 100.0 * v for v in values]
    top = max((v for v in percent if v is not None), default=1.0) or 1.0
    canvas = Canvas((-0.3, len(labels) - 0.7), (0.0, 1.08 * top), height=190)
    canvas.axes("", "% of words", x_names=labels, y_ticks=4)
    canvas.line(x, percent, "blue")
    titles = [f"{a}: {_percent(v)} of {whole(n)} documents" for a, v, n in zip(labels, values, documents, strict=True)]
    canvas.points(x, percent, "blue", titles, r=2.8)
    known = [v for v in values if v is not None]
    words = f"From {_percent(min(known))} to {_percent(max(known))}." if known else "No documents."
    return figure(
        canvas, name, title, words, description=f"Shares in {len(labels)} groups, {labels[0]} to {labels[-1]}."
    )


def documents(record: dict[str, Any]) -> Html | None:
    """The documents with the largest share of each topic."""
    rows = _rows(topics_of(record))[:_LISTED]
    lines = [
        [
            f"{i}: {_words(row, 3)}" if j == 0 else "",
            _percent(mapping(example).get("share")),
            whole(mapping(example).get("row")),
            clipped(mapping(example).get("text"), 160),
        ]
        for i, row in enumerate(rows, 1)
        for j, example in enumerate(items(row.get("examples"))[:3])
    ]
    if not lines:
        return None
    return joined(
        table(["topic", "share", "row", "document"], lines, numeric=(1, 2), label="documents"),
        tag("p", "Rows are counted from 0. Shares of all documents are in documents.csv.", class_="quiet"),
    )


def number_of_topics(record: dict[str, Any]) -> Html | None:
    """Perplexity and coherence by the number of topics."""
    found = topics_of(record)
    rows = [mapping(row) for row in items(found.get("candidates"))]
    if not rows:
        return None
    k, chosen = [number(row.get("topics")) for row in rows], float(len(_rows(found)))
    lines = [
        [whole(row.get("topics")), whole(row.get("perplexity")), shown(row.get("coherence"), 3)]
        for row in rows[:_LISTED]
    ]
    y = numbers([row.get("perplexity") for row in rows])
    picture = None
    if sum(a is not None and b is not None for a, b in zip(k, y, strict=True)) > 1:
        canvas = Canvas(span_of(k, pad=0.05), span_of(y))
        canvas.axes("topics", "perplexity")
        canvas.line(k, y, "blue")
        canvas.points(k, y, "blue", [f"{whole(a)} topics: {whole(b)}" for a, b in zip(k, y, strict=True)])
        picture = figure(
            canvas,
            "perplexity",
            "Perplexity",
            "Of words that were held out: the lower, the better they are predicted.",
            description=f"{len(rows)} numbers of topics.",
        )
    many = len(rows) > 1
    return joined(
        tag(
            "p",
            "The least number of topics whose perplexity is within 2% of the best was fitted to all documents."
            if many
            else "The number of topics was given.",
        ),
        table(
            ["topics", "perplexity", "coherence"],
            lines,
            numeric=(0, 1, 2),
            label="numbers of topics",
            marked=k.index(chosen) if many and chosen in k[:_LISTED] else None,
        ),
        tag("div", picture, class_="figures") if picture else None,
    )


def convergence(record: dict[str, Any]) -> Html | None:
    """The certificate of the sampler."""
    caption = "Minus the log joint probability of words and their topics, but for a constant, along the sweeps."
    return _convergence.convergence(topics_of(record), caption=caption, per_round="step")
