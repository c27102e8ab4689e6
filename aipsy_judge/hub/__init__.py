"""Fetching a judge from the model hub: through huggingface-hub, only when somebody says `models pull`."""
