"""Trunk-and-branch scoring. Planning and reading are pure; only `run` speaks to a backend.

encode   messages -> tokens              tree   prompts -> trunk and boughs, nothing common evaluated twice
slots    an answer, slot by slot         plan   cells, widths, what does not fit
choice   one slot's distribution
run      evaluates a plan                prose  bounded free text (the rationale)
"""
