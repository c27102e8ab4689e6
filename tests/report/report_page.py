"""Reads a report as a browser would: elements, their nesting, their text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from aipsy_judge.report.html import render_html
from aipsy_judge.runs import RunView

VOID = {"meta", "br", "link", "img", "input", "hr", "col"}
# Drawn, not nested: the report closes these with "/>", as SVG allows.
SVG_LEAVES = {"rect", "line", "circle", "path", "polyline"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, tag: str | None = None) -> list[Element]:
        """Every element below this one, in the order of the document."""
        below = [c for c in self.children if isinstance(c, Element)]
        found = [e for c in below for e in (c, *c.all())]
        return [e for e in found if tag is None or e.tag == tag]

    def by_id(self, id: str) -> Element:
        return next(e for e in self.all() if e.attributes.get("id") == id)

    def by_class(self, name: str) -> list[Element]:
        return [e for e in self.all() if name in e.attributes.get("class", "").split()]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self.open = [self.root]
        self.faults: list[str] = []

    def handle_starttag(self, tag, attrs):
        names = [n for n, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> names an attribute twice: {names}")
        element = Element(tag, {n: v or "" for n, v in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        if tag not in SVG_LEAVES:
            self.faults.append(f"<{tag}/> closes itself")
        self.open[-1].children.append(Element(tag, {n: v or "" for n, v in attrs}))

    def handle_endtag(self, tag):
        if self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes <{self.open[-1].tag}>")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read_page(html: str) -> Element:
    """The document as a tree. AssertionError where tags are not nested."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.faults == []
    assert len(reader.open) == 1, f"left open: {[e.tag for e in reader.open]}"
    return reader.root


def page_of(run: RunView) -> Element:
    """The report of a run as a tree."""
    return read_page(render_html(run))


def words(element: Element) -> str:
    """The text of an element with single blanks, as it is seen."""
    return " ".join(element.text.split())
