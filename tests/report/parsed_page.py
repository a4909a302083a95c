"""A page as a parser reads it: elements closed in order, one script, no event handlers."""

import html.parser

VOID = {"meta", "link", "br", "hr"}


class Balanced(html.parser.HTMLParser):
    """Fails on elements that are not closed in order, and keeps scripts and event handlers."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.handlers, self.texts = [], 0, [], []

    def handle_starttag(self, name, attributes):
        self.scripts += name == "script"
        self.handlers += [key for key, _ in attributes if key.startswith("on")]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.texts.append(data)


def parsed(page):
    found = Balanced()
    found.feed(page)
    assert found.open == []
    assert found.scripts == 1
    assert found.handlers == []
    return found
