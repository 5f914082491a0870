"""The paper's COCO recipe (section D.2), stated once: ViTDet's Mask R-CNN with SR-ViT as its net.

What differs from Detectron2's model zoo ViTDet config: the net, global attention in every block and
no relative positions (both as Table 4's FLOPs say), batch 16 and the 3x schedule with cosine decay,
layer-wise decay over the unique blocks, no weight decay on the tokens.
"""

from pathlib import Path

import detectron2
import detectron2.data.transforms as T
from detectron2.config import LazyCall as L
from detectron2.config import LazyConfig
from detectron2.data import build_detection_test_loader, get_detection_dataset_dicts
from detectron2.evaluation import COCOEvaluator
from detectron2.solver import WarmupParamScheduler
from fvcore.common.param_scheduler import CosineParamScheduler
from omegaconf import OmegaConf

from srvit_backbone.detectron2 import (
    SRViTBackbone,
    SRViTFeaturePyramid,
    get_srvit_optimizer_params,
)
from srvit_backbone.detectron2.loader import build_train_loader
from srvit_backbone.detectron2.mapper import Mapper

# Detectron2's own function for this, model_zoo.get_config, needs the pkg_resources that setuptools
# dropped in version 82; the files are the same.
_ZOO = Path(detectron2.__file__).parent / "model_zoo" / "configs" / "common"

# --- model ---------------------------------------------------------------------------
model = LazyConfig.load(str(_ZOO / "models" / "mask_rcnn_vitdet.py")).model
model.backbone._target_ = SRViTFeaturePyramid
model.backbone.net = L(SRViTBackbone)(
    variant="srvit_s_t3",
    img_size=1024,
    drop_path_rate=0.1,
    out_feature="last_feat",
    window_size=0,  # tokens; the paper's attention is global
    grad_checkpointing=False,  # True, or "keep_attention" for a little more memory and less time
)

# --- data: large-scale jittering on 1024 x 1024 --------------------------------------
_IMAGE_SIZE = 1024
dataloader = OmegaConf.create()
dataloader.train = L(build_train_loader)(
    dataset=L(get_detection_dataset_dicts)(names="coco_2017_train"),
    mapper=L(Mapper)(
        is_train=True,
        augmentations=[
            L(T.RandomFlip)(horizontal=True),
            L(T.ResizeScale)(
                min_scale=0.1, max_scale=2.0, target_height=_IMAGE_SIZE, target_width=_IMAGE_SIZE
            ),
            # Not padded here: padding belongs to the model, after normalisation.
            L(T.FixedSizeCrop)(crop_size=(_IMAGE_SIZE, _IMAGE_SIZE), pad=False),
        ],
        image_format="${model.input_format}",
        use_instance_mask=True,
        # Takes polygons and RLE; Detectron2's "polygon" stops on the latter.
        instance_mask_format="bitmask",
        recompute_boxes=True,
    ),
    total_batch_size=16,
    num_workers=4,
    seed="${train.seed}",
)
dataloader.test = L(build_detection_test_loader)(
    dataset=L(get_detection_dataset_dicts)(names="coco_2017_val", filter_empty=False),
    mapper=L(Mapper)(
        is_train=False,
        augmentations=[
            L(T.ResizeShortestEdge)(short_edge_length=_IMAGE_SIZE, max_size=_IMAGE_SIZE)
        ],
        image_format="${model.input_format}",
    ),
    num_workers=4,
)
dataloader.evaluator = L(COCOEvaluator)(dataset_name="${..test.dataset.names}")

# Own data, in place of COCO: one folder (own_data=FOLDER: COCO json, YOLO, Pascal VOC, LabelMe), or
# the four paths of a COCO set, which win. The classes are those of the labels.
own_data = dict(
    folder="",
    train_json="",
    train_images="",
    val_json="",
    val_images="",
    masks=True,  # False trains the same config without its mask head, for labels with boxes only
    exif="auto",  # "upright" or "stored": what labels of pictures turned by EXIF are of
    check=True,  # False believes the labels without opening a picture
)
class_names = []  # of the data, filled in when a run starts, for drawing later on

# --- schedule: 3x --------------------------------------------------------------------
train = dict(
    output_dir="output/${model.backbone.net.variant}",
    # Backbone weights, or those of a whole detector; "" starts from scratch.
    init_checkpoint="pretrained/${model.backbone.net.variant}.safetensors",
    # Accept a plain ViT's (DeiT's) blocks in a recursive backbone.
    warm_start=False,
    # What fits into memory at once; a larger batch of a process is cut into parts, and their
    # gradients averaged as those of so many GPUs are. 0 for no limit.
    max_batch_per_process=0,
    max_iter=270_000,  # x 16 images = 36.8 epochs of COCO's 117,266 annotated images
    amp=dict(enabled=True, dtype="float16"),  # used on a GPU; "bfloat16" needs no loss scaling
    ddp=dict(broadcast_buffers=False, find_unused_parameters=False, fp16_compression=True),
    checkpointer=dict(period=5000, max_to_keep=3),
    eval_period=5000,
    log_period=20,
    seed=0,
    device="cuda",  # the CPU where there is no GPU
    prediction_sheet=12,  # images in predictions.png, 0 for none
)
lr_multiplier = L(WarmupParamScheduler)(
    scheduler=L(CosineParamScheduler)(start_value=1.0, end_value=0.0),
    warmup_length=1000 / train["max_iter"],
    warmup_factor=0.001,
)
optimizer = LazyConfig.load(str(_ZOO / "optim.py")).AdamW
optimizer.params._target_ = get_srvit_optimizer_params
optimizer.params.lr_decay_rate = 0.7
