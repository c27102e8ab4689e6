"""From several judges' scores and an expert's anchors to the target: a ladder of corrections, blended out of fold."""
