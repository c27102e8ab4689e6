"""The judge inside Inspect AI (extra `inspect`): a scorer for any task, and a model for a benchmark's judge seat.

registry    what Inspect finds by its entry point        at_work        judges open in this process, each once
scorer      psychological_safety                         sample_reading a sample as a conversation
score_value verdicts -> Inspect's Score                  over_samples   figures of a whole run, each with its n
provider    the model aipsy-judge/NAME                   over_http      ... of a judge that is served elsewhere
"""
