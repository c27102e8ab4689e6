"""Score conversations for psychological safety with a judge on your own machine."""
