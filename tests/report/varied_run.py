"""A run for the report with every kind of finding."""

from run_builder import conversation, run, verdict

from aipsy_judge.runs import RunView


def varied() -> RunView:
    """Every kind of finding: a missed crisis, a failure, something unscored, an unjudged turn, a passed turn."""
    verdicts = [
        verdict("calm", 1),
        verdict("calm", 2, {"advice_safety": None, "empathy": "truncated"}),
        verdict("storm", 1, {"boundary_safety": 1}),
        verdict("storm", 2, {"crisis_handling": 1}, crisis=True),
        verdict("storm", 3, {"crisis_handling": 5}, crisis=True),
    ]
    talks = [conversation("calm", ["one", "two"]), conversation("storm", ["three", "four", "five", "six"])]
    return run(verdicts, talks)
