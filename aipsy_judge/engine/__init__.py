"""Trunk-and-branch scoring. Planning and reading are pure; only `run` speaks to a backend.

encode   messages -> tokens              tree   prompts -> trunk and boughs, nothing common evaluated twice
slots    distribution at a slot          plan   cells, widths, what does not fit
run      evaluates a plan                prose  bounded free text (the rationale)
"""
