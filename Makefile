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

.PHONY: setup demo pretrain-demo test test-all test-mmdet lint clean

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

datasets/digits: | $(STAMP)
	$(BIN)/python tools/make_mini_dataset.py digits $@

# Weights to start the demo from: none, or a file with the backbone.
INIT ?=
DEMO ?= output/demo
DETECTION := detection/configs/mask_rcnn_srvit_demo.py
SEGMENTATION := segmentation/configs/upernet_srvit_demo.py

# Detection from scratch, then segmentation from the detector's backbone.
demo: $(STAMP) datasets/coins
	$(BIN)/python tools/train_net.py --config-file $(DETECTION) --resume \
	    train.init_checkpoint='$(INIT)' train.output_dir=$(DEMO)
	$(BIN)/python tools/demo.py --config-file $(DEMO)/config.yaml \
	    --weights $(DEMO)/model_final.pth --input datasets/coins/coins.png --output $(DEMO)/coins.png
	BACKBONE=$(DEMO)/model_final.pth $(BIN)/mim train mmsegmentation \
	    $(SEGMENTATION) --gpus 0 --work-dir $(DEMO)_seg --resume
	$(BIN)/python tools/demo.py --config-file $(DEMO)_seg/$(notdir $(SEGMENTATION)) \
	    --weights "$$(cat $(DEMO)_seg/last_checkpoint)" --input datasets/coins/coins.png \
	    --output $(DEMO)_seg/coins.png
	@echo
	@echo "Box and mask AP, mIoU:  $(DEMO)/metrics_final.json, $(DEMO)_seg/metrics_final.json"
	@echo "The photograph:         $(DEMO)/coins.png, $(DEMO)_seg/coins.png"
	@echo "Validation scenes:      $(DEMO)/predictions.png, $(DEMO)_seg/predictions.png"
	@echo "Curves:                 $(BIN)/tensorboard --logdir output"
	@echo "Next, your own data:    README.md, 'Train on your own data'"

# The whole chain: pretraining on handwritten digits, then the demo from those weights.
pretrain-demo: $(STAMP) datasets/digits
	$(BIN)/python tools/train_imagenet.py digits --resume
	$(BIN)/python tools/publish_weights.py output/pretrain/srvit_nano_t3 --folder output/pretrained
	$(MAKE) demo INIT=output/pretrained/srvit_nano_t3.safetensors DEMO=output/pretrain_demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto

test-all: $(STAMP)
	$(BIN)/python -m pytest -q -n auto -m ''

# MMDetection needs mmcv's compiled operations, which do not build on the torch above: an
# environment of its own, half an hour or more on 2 cores.
MMDET := .venv-mmdet
test-mmdet: $(MMDET)/.with-mmdet datasets/coins
	$(MMDET)/bin/python -m pytest -q -m '' tests/test_mmdet.py tests/test_openmmlab_pyramid.py \
	    tests/test_use_in_your_detector.py

$(MMDET)/.with-mmdet:
	$(MAKE) $(MMDET)/.installed VENV=$(MMDET) TORCH='torch==2.9.1 torchvision==0.24.1'
	$(MMDET)/bin/pip install -q 'setuptools>=77,<81' wheel ninja psutil
	$(MMDET)/bin/pip install -v --force-reinstall --no-deps --no-build-isolation --no-cache-dir \
	    --no-binary onedl-mmcv onedl-mmcv
	$(MMDET)/bin/pip install -q onedl-mmdetection
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(MMDET) output datasets
