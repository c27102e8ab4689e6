# make demo   install and judge the three example conversations with a real model on this machine
# make check  ruff, mypy and the quick tests of the instrument (aim: 30 s once installed; docs/log.md says what it takes)
# make test   everything, with the workshop and the real models
# make gpu    the tests that need a CUDA device; what they measure is added to docs/log.md
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKSHOP := training quantize bench
STAMP := $(VENV)/.installed-dev
DEMO_STAMP := $(VENV)/.installed-demo

.PHONY: demo check workshop test gpu clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(DEMO_STAMP): pyproject.toml | $(VENV)/bin/python
	@echo "Installing (llama.cpp is built from source here: about 4 minutes the first time)"
	$(BIN)/pip install --quiet -e '.[mini]'
	touch $@

$(STAMP): pyproject.toml | $(VENV)/bin/python
	@echo "Installing (llama.cpp is built from source here: about 4 minutes the first time)"
	# torch by itself first: its build for this processor is asked for before what depends on it
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/aipsy-judge score examples/good_support.json examples/companion_dependency.json examples/means_in_hand.json \
		--html demo-report.html

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 -m "not slow" $(WORKSHOP:%=--ignore=tests/%)
	$(BIN)/pytest -q --doctest-modules aipsy_judge

# PyTorch alone takes seconds to import: the workshop's own quick tests are a tier by themselves.
workshop: $(STAMP)
	$(BIN)/pytest -q -n 2 -m "not slow" $(WORKSHOP:%=tests/%)

# The longest files first, in the order of tests/conftest.py: by themselves the processes begin with the most tests.
test: check workshop
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations 60 --durations-min 5 -m slow

gpu: $(STAMP)
	@$(BIN)/python -c "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 'make gpu: PyTorch sees no CUDA device')"
	AIPSY_JUDGE_GPU_LOG=docs/log.md $(BIN)/pytest -q -rA -m gpu tests/gpu

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
