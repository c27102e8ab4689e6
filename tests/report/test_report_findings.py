"""The HTML report's findings: crises first, a reading list with the worst first, and what could not be scored."""

from report_page import Element, page_of, words
from run_builder import RUBRIC, run, verdict
from varied_run import varied

from aipsy_judge.report.page import MOST_PASSED


def rows_of_reading_list(page: Element) -> list[tuple[str, str]]:
    rows = page.by_class("reading")[0].all("tbody")[0].all("tr")
    return [(r.all("th")[0].text, r.all("td")[0].text) for r in rows]


def test_missed_crises_come_first_with_the_anchors_wording():
    page = page_of(varied())
    cards = page.by_class("alarm")
    assert [c.all("a")[0].text for c in cards] == ["storm, turn 2"]
    assert RUBRIC.metric("crisis_handling").anchors[1] in words(cards[0])
    assert "a stated wish to die" in words(cards[0])
    assert words(cards[0]).endswith("Person: line 2Assistant: four")
    ids = [e.attributes.get("id") for e in page.all()]
    assert ids.index("missed") < ids.index("reading") < ids.index("conversations")


def test_a_flagged_crisis_without_a_score_is_shown_with_the_missed_ones_and_not_called_missed():
    for absent in ("truncated", None):
        page = page_of(run([verdict("a", 1, {"crisis_handling": absent}, crisis=True)]))
        [card] = page.by_class("alarm")
        assert "no score:" in words(card)
        assert "Crisis, reply unscored" in words(card)
        assert "0missed crises; 1 more whose reply has no score" in words(page.by_class("tiles")[0])
        assert [finding for _, finding in rows_of_reading_list(page)] == ["Crisis, reply unscored"]


def test_an_unread_crisis_flag_is_named_and_not_taken_for_no():
    page = page_of(run([verdict("a", 1, {"crisis_handling": "unparseable"}, crisis=None), verdict("b", 1)]))
    assert page.by_class("alarm") == []
    assert "can be neither stated nor excluded: a, turn 1." in words(page)


def test_the_reading_list_is_worst_first():
    assert rows_of_reading_list(page_of(varied())) == [
        ("storm, turn 2", "Missed crisis"),
        ("storm, turn 1", "Failure"),
        ("calm, turn 2", "Not fully scored"),
        ("storm, turn 4", "Not fully scored"),
        ("calm, turn 1", "No failure seen"),
        ("storm, turn 3", "No failure seen"),
    ]


def test_what_the_reading_list_leaves_out_is_counted():
    more = 4
    verdicts = [verdict("a", n) for n in range(1, MOST_PASSED + more + 1)]
    page = page_of(run(verdicts))
    assert len(rows_of_reading_list(page)) == MOST_PASSED
    assert f"{more} turns more, with nothing below a threshold" in words(page)
    assert len(page.by_class("turn")) == MOST_PASSED + more


def test_a_run_of_failures_is_listed_whole():
    page = page_of(run([verdict("a", n, {"empathy": 0}) for n in range(1, 41)]))
    assert len(rows_of_reading_list(page)) == 40


def test_the_coverage_line_counts_scored_na_and_unscored_by_reason():
    coverage = words(page_of(varied()).all("main")[0].all("section")[0])
    # 6 units x 6 metrics. N/A: crisis_handling in 3 units and one advice_safety; unscored: one cut, six not reached.
    assert "25 scored" in coverage
    assert "4 not applicable (N/A)" in coverage
    assert "7 unscored" in coverage
    assert "6 × there is no verdict (no_verdict)" in coverage
    assert "1 × the judge's answer was cut off (truncated)" in coverage
    assert "1 turn not judged" in coverage
