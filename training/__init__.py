"""From a rated set to a judge of one's own: targets, sample, rendering, LoRA fine-tuning. Run from a clone."""
