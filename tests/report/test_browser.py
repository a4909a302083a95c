"""The page in a real browser."""

import chromium
import pytest
import record

from epicycle import report

EXECUTABLE = chromium.found()
pytestmark = [
    pytest.mark.skipif(EXECUTABLE is None, reason=f"no browser: none of {', '.join(chromium.NAMES)} is in PATH"),
    pytest.mark.xdist_group("browser"),
]
HOSTILE = "</script><script>window.hacked=1</script><img src=http://example.org/x onerror=window.hacked=1>\"'`${}"

#: Elements with text of their own whose contrast with what is behind them is below 4.5 to 1.
FAINT = """(() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => c.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
      && !e.closest('.value') && e.localName !== 'title' && e.localName !== 'desc' && e.localName !== 'script'
      && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
    const style = getComputedStyle(e), svg = e.namespaceURI.endsWith('svg');
    const a = light(parse(svg ? style.fill : style.color));
    const b = light(behind(svg ? e.ownerSVGElement.parentElement : e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    return [contrast, e.localName + '.' + (e.className.baseVal ?? e.className) + ': ' + e.textContent.slice(0, 40)];
  }).filter(([contrast]) => contrast < 4.5).map(([c, what]) => what + ' ' + c.toFixed(2));
})()"""
#: What sticks out of the page to the right, other than inside boxes that scroll.
WIDE = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.box, pre, .skip') && e.checkVisibility()
  && e.getBoundingClientRect().right > innerWidth + 0.5
  ).map(e => e.localName + '.' + (e.className.baseVal ?? e.className))"""
#: The smallest label of a figure, in pixels of the screen.
SMALLEST = """Math.min(...[...document.querySelectorAll('svg.plot text')].map(
  t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a || 99).map(Math.abs).filter(v => v > 1))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    full = record.classification()
    made = {
        "classification": full,
        "regression": record.regression(),
        "clustering": record.clustering(),
        "topics": record.topics(),
        "hostile": {
            **full,
            "title": HOSTILE,
            "reproduce": HOSTILE,
            "columns": [{"name": HOSTILE + "x" * 500, "treatment": HOSTILE, "warnings": [HOSTILE]}] * 200,
            "findings": [{**finding, "verdict": HOSTILE, "notes": [HOSTILE]} for finding in full["findings"]],
        },
        "empty": {},
    }
    for name, given in made.items():
        report.write(given, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browser(EXECUTABLE, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.parametrize("name", ["classification", "regression", "clustering", "topics", "hostile", "empty"])
def test_loads_alone_and_without_complaint(browser, pages, name):
    browser.show(pages[name])
    assert browser.complaints() == []
    assert browser.requests()[0] == pages[name].as_uri()
    assert [url for url in browser.requests()[1:] if not url.startswith("data:")] == []
    assert browser.ask("window.hacked === undefined && document.querySelectorAll('img, iframe, object').length === 0")
    assert browser.ask("document.querySelectorAll('script').length") == 1


def test_figures_and_sections_are_there(browser, pages):
    browser.show(pages["classification"])
    drawn = browser.ask("[...document.querySelectorAll('figure[data-figure]')].map(f => f.dataset.figure)")
    columns = [name for name in drawn if name.startswith("column-")]
    assert columns == [f"column-{i}" for i in range(10)]
    assert set(drawn) - set(columns) == {
        "search",
        "calibration",
        "confusion",
        "roc",
        "precision_recall",
        "learning_curve",
        "importances",
        "ablation",
        "slices",
        "threshold",
        "dependence-0",
        "row-0",
    }
    assert len(drawn) == len(set(drawn))
    assert browser.ask("document.querySelectorAll('svg.spark').length") == 10
    browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.ask("[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 5)")
    assert browser.ask(
        "[...document.querySelectorAll('svg.plot')].every(s => s.querySelector('title') && s.querySelector('desc'))"
    )
    assert not browser.ask("/NaN|undefined|Infinity/.test(document.body.innerHTML)")
    links = browser.ask("[...document.querySelectorAll('.toc a')].map(a => a.hash.slice(1))")
    shown = ["data", "models", "quality", "groups", "proof", "limits", "earned", "learnt", "fails", "threshold"]
    assert links == [*shown, "reproduce"]
    names = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(names) == len(set(names))
    browser.show(pages["regression"])
    assert "residuals" in browser.ask("[...document.querySelectorAll('figure')].map(f => f.dataset.figure)")


def test_a_clustering_has_its_own_sections_in_light_and_dark(browser, pages):
    for dark in (False, True):
        browser.show(pages["clustering"], dark=dark)
        assert browser.ask(FAINT) == []
    drawn = browser.ask("[...document.querySelectorAll('figure[data-figure]')].map(f => f.dataset.figure)")
    assert drawn == ["evidence", "embedding", "silhouettes", "sizes"]
    links = browser.ask("[...document.querySelectorAll('.toc a')].map(a => a.hash.slice(1))")
    assert links == ["data", "number", "clusters"]
    assert browser.ask("document.querySelectorAll('figure[data-figure=embedding] circle').length") == 93
    assert "3 clusters" in browser.ask("document.querySelector('.headline').textContent")


def test_topics_have_their_own_sections_in_light_and_dark(browser, pages):
    for dark in (False, True):
        browser.show(pages["topics"], dark=dark)
        assert browser.ask(FAINT) == []
    drawn = browser.ask("[...document.querySelectorAll('figure[data-figure]')].map(f => f.dataset.figure)")
    assert drawn == ["sizes", *(f"{kind}-{k}" for kind in ("topic", "over") for k in (1, 2, 3)), "objective"]
    links = browser.ask("[...document.querySelectorAll('.toc a')].map(a => a.hash.slice(1))")
    assert links == ["topics", "shares", "documents", "perplexity", "sampler", "reproduce"]
    assert browser.ask("document.querySelectorAll('figure[data-figure=over-1] circle').length") == 6
    assert browser.ask(
        "[...document.querySelectorAll('figure[data-figure=over-1] .tick')].some(t => t.innerHTML === '1995')"
    )
    assert not browser.ask("/NaN|undefined|Infinity/.test(document.body.innerHTML)")
    names = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["classification", "regression", "clustering", "topics", "hostile", "empty"])
def test_phone(browser, pages, name):
    browser.show(pages[name], width=360, height=740)
    assert browser.ask("document.scrollingElement.scrollWidth") <= 360
    assert browser.ask(WIDE) == []
    if name != "empty":
        assert browser.ask(SMALLEST) >= 11


def test_light_and_dark(browser, pages):
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.show(pages["classification"])
    assert browser.ask(ground) == "rgb(255, 255, 255)"
    assert browser.ask(FAINT) == []
    browser.show(pages["classification"], dark=True)
    assert browser.ask(ground) == "rgb(20, 23, 27)"
    assert browser.ask(FAINT) == []
    browser.ask("document.getElementById('theme').click()")
    assert browser.ask(ground) == "rgb(255, 255, 255)"
    browser.ask("document.getElementById('theme').click()")
    assert browser.ask(ground) == "rgb(20, 23, 27)"
    browser.ask("try { localStorage.clear() } catch (e) {}")


def test_print(browser, pages):
    browser.show(pages["classification"], dark=True)
    browser.media(dark=True, kind="print")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.ask("getComputedStyle(document.querySelector('.toc')).display") == "none"
    browser.media()
    page = browser.pdf()
    assert page.startswith(b"%PDF")
    assert 4 <= page.count(b"/Type /Page\n") + page.count(b"/Type /Page ") + page.count(b"/Type/Page/") <= 24
