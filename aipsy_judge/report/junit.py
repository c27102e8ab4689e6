"""JUnit XML, for continuous integration: a test case a turn. What could not be scored is an error, never skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from ..gate import GateResult, RuleResult, wanted_and_found
from ..reading_list import Entry, reading_list
from ..rubric import Rubric
from ..runs import RunView
from ..units import by_conversation, units
from ..verdict import NotApplicable, Scored, Unscored
from .hidden import on_one_line, plain
from .panel import failed_words, open_words
from .wording import number, unscored_words

Element = ElementTree.Element


def render_junit(run: RunView, gate: GateResult | None = None) -> str:
    """A run as a JUnit XML document.

    A suite a conversation, a case a turn (or one case for a whole conversation). A case has

    failure  where a threshold of the rubric is missed (type "failure"), a crisis is ("missed_crisis"), or the reply
             to a flagged crisis has no score ("unanswered_crisis"): that is let through by nobody
    error    where no failure was seen but something is unscored (type "unscored")

    With `gate`, a suite more with a case a rule; a rule without evidence is an error. A run that holds nothing is one
    error, so that it cannot be taken for a success. Raises InputError where the run cannot be counted.
    """
    root = Element("testsuites", name="aipsy-judge")
    found = units(run)
    entries = {e.unit.key: e for e in reading_list(run.rubric, found)}
    for id, group in by_conversation(found).items():
        cases = [_case(run.rubric, entries[u.key]) for u in group]
        root.append(_suite(on_one_line(id), cases, run))
    if not entries:
        root.append(
            _suite("aipsy-judge", [_problem("run", "error", "unscored", "the run holds nothing to judge")], run)
        )
    if gate is not None:
        root.append(_suite("gate", [_rule_case(r) for r in gate.rules], run))
    _count(root, root.iter("testcase"))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(name: str, cases: Sequence[Element], run: RunView) -> Element:
    suite = Element("testsuite", name=name, timestamp=on_one_line(run.created))
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in {**run.lane.to_dict(), "aipsy-judge": run.version}.items():
        ElementTree.SubElement(properties, "property", name=key, value=on_one_line(value))
    suite.extend(cases)
    for case in cases:
        case.set("classname", name)
    _count(suite, cases)
    return suite


def _count(element: Element, cases: Iterable[Element]) -> None:
    found = list(cases)
    element.set("tests", str(len(found)))
    for kind in ("failure", "error"):
        element.set(f"{kind}s", str(sum(c.find(kind) is not None for c in found)))
    element.set("skipped", "0")


def _case(rubric: Rubric, entry: Entry) -> Element:
    unit = entry.unit
    name = "conversation" if unit.turn is None else f"turn {unit.turn}"
    if entry.finding == "passed":
        return Element("testcase", name=name)
    why = "; ".join(failed_words(rubric, unit) + open_words(rubric, unit)) or "a crisis is flagged and has no score"
    kind, type_ = {
        "missed": ("failure", "missed_crisis"),
        "unanswered": ("failure", "unanswered_crisis"),
        "failure": ("failure", "failure"),
        "open": ("error", "unscored"),
    }[entry.finding]
    return _problem(name, kind, type_, why, _details(rubric, entry))


def _problem(name: str, kind: str, type_: str, message: str, text: str = "") -> Element:
    case = Element("testcase", name=name)
    problem = ElementTree.SubElement(case, kind, type=type_, message=on_one_line(message))
    problem.text = plain(text) or None
    return case


def _details(rubric: Rubric, entry: Entry) -> str:
    lines = []
    for metric in rubric.metrics:
        match entry.unit.scores[metric.name]:
            case Scored(value=value):
                lines.append(f"{metric.title}: {number(value)}, {metric.anchor_for(value) or ''}".rstrip(", "))
            case NotApplicable():
                lines.append(f"{metric.title}: N/A")
            case Unscored() as score:
                lines.append(f"{metric.title}: unscored, {unscored_words(score)}")
    verdict = entry.unit.verdict
    if verdict is not None and verdict.rationale:
        lines.append(f"The judge's reason: {verdict.rationale}")
    return "\n".join(lines)


def _rule_case(rule: RuleResult) -> Element:
    if rule.status == "pass":
        return Element("testcase", name=rule.rule)
    return _problem(rule.rule, "failure" if rule.status == "fail" else "error", rule.status, wanted_and_found(rule))
