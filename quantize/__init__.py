"""Merging, converting and proving weights: run from a clone, `python -m quantize.NAME`."""
