# Everything runs inside .venv, which `make setup` builds; every target is a no-op once it is done.
PYTHON ?= python3
# The PyPI wheel by default; any pip requirement switches, e.g. the official source:
#   make setup DETECTRON2='git+https://github.com/facebookresearch/detectron2.git'
DETECTRON2 ?=
TORCH ?= torch torchvision
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-all lint clean

setup: $(STAMP)
	@$(BIN)/python tools/doctor.py

$(STAMP): setup.py detection/requirements-detectron2.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q $(TORCH)
	$(PIP) install -q -e '.[all]'
ifeq ($(DETECTRON2),)
	$(PIP) install -q --upgrade --no-deps --only-binary=:all: --python-version 3.10 --require-hashes \
	    --target "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	    -r detection/requirements-detectron2.txt
else
	$(PIP) install -q --no-build-isolation '$(DETECTRON2)'
endif
	touch $@

datasets/coins: | $(STAMP)
	$(BIN)/python tools/make_mini_dataset.py coins $@

demo: $(STAMP) datasets/coins
	$(BIN)/python -W ignore tools/train_net.py --config-file detection/configs/mask_rcnn_srvit_demo.py --resume
	$(BIN)/python -W ignore tools/demo.py --config-file output/demo/config.yaml \
	    --weights output/demo/model_final.pth --input datasets/coins/coins.png --output output/demo/coins.png
	@echo
	@echo "Box and mask AP:        output/demo/metrics_final.json"
	@echo "The photograph:         output/demo/coins.png"
	@echo "Validation scenes:      output/demo/predictions.png"
	@echo "Curves:                 $(BIN)/tensorboard --logdir output"
	@echo "Next, your own data:    README.md, 'Train on your own data'"

test: $(STAMP)
	$(BIN)/python -m pytest -q

test-all: $(STAMP)
	$(BIN)/python -m pytest -q -m ''

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf $(VENV) output datasets
