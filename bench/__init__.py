"""Programs that measure: run from a clone, `python -m bench.NAME`."""
