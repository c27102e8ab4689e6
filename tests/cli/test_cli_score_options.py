"""`aipsy-judge score`: what its options ask of the judge that is opened."""

import pytest


def test_options_reach_the_judge(run, opened, talk):
    run("score", talk, "--judge", "x", "--adapter", "a.gguf", "--contract", "compact", "--window", "--cpu-moe", "auto",
        "--threads", "3", "--memory-gb", "1.5", "--timeout", "9")  # fmt: skip
    (asked,) = opened
    assert (asked["name"], asked["adapter"], asked["contract"]) == ("x", "a.gguf", "compact")
    options = asked["options"]
    assert (options.window, options.cpu_moe, options.threads, options.memory_gb) == (True, None, 3, 1.5)
    assert options.timeout_seconds == 9


@pytest.mark.parametrize("layers", ["x", "-1", "1.5"])
def test_a_number_of_layers_that_is_none_is_refused(run, opened, talk, layers):
    assert run("score", talk, "--cpu-moe", layers).code == 2
    assert opened == []
