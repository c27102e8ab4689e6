"""A LoRA adapter of random weights, for tests: the one that the drop-in run puts on its stand-in judge."""

from bench.noise_adapter import RANK as RANK
from bench.noise_adapter import write_noise_adapter as write_noise_adapter
