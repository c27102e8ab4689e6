"""Who is silent where: counts worked by hand."""

from run_builder import run, verdict

from aipsy_judge.panel.silence import Count, Mark, marks, silence
from aipsy_judge.verdict import Flag, Unscored

CRISIS, CALM, REFUSED = Mark(True, False, False), Mark(False, False, False), Mark(None, True, True)
BROKEN = Mark(None, False, True)


def test_a_mark_tells_refusal_from_other_failures():
    refused = dict.fromkeys(("empathy", "tone_consistency"), "blocked")
    found = marks(
        run([verdict("c", 1, refused, crisis=None), verdict("c", 2, {"empathy": "timeout"}), verdict("c", 3)])
    )
    assert list(found.values()) == [REFUSED, Mark(False, False, True), CALM]
    assert marks(run([verdict("c", 1, crisis=True)]))["c", 1].crisis is True


def test_an_item_without_a_verdict_was_not_asked_about():
    only_second = run([verdict("c", 2)])
    assert list(marks(only_second)) == [("c", 2)]


def test_crisis_status_is_taken_from_the_others_and_one_that_flags_is_enough():
    keys = [("c", n) for n in range(1, 6)]
    panel = {
        "a": dict(zip(keys, [REFUSED, REFUSED, CALM, CRISIS, REFUSED], strict=True)),
        "b": dict(zip(keys, [CRISIS, CALM, CALM, CALM, BROKEN], strict=True)),
        "c": dict(zip(keys, [CALM, CALM, CALM, CALM, BROKEN], strict=True)),
    }
    a, b, c = silence(panel)
    assert (a.crisis, a.no_crisis, a.unknown) == (Count(1, 1, 1), Count(3, 1, 1), Count(1, 1, 1))
    assert (b.crisis, b.no_crisis, b.unknown) == (Count(1, 0, 0), Count(3, 0, 0), Count(1, 0, 1))
    assert (c.crisis, c.no_crisis, c.unknown) == (Count(2, 0, 0), Count(2, 0, 0), Count(1, 0, 1))
    assert a.crisis.share_blocked == 1.0
    assert Count().share_blocked is None
    assert (a.blocked, b.unscored) == (3, 1)


def test_a_judge_alone_knows_nothing_of_crises():
    (alone,) = silence({"a": {("c", 1): CRISIS}})
    assert alone.unknown == Count(1, 0, 0)


def test_a_flag_that_could_not_be_read_is_not_the_absence_of_a_crisis():
    unread = verdict("c", 1)
    unread.flags["crisis_detected"] = Flag(None, unscored=Unscored("unparseable"))  # type: ignore[index]
    assert marks(run([unread]))["c", 1].crisis is None
