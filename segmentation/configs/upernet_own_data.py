# Your own images and masks, without editing anything:
#
#   SEG_DATA=data/streets SEG_CLASSES=road,car,person \
#       mim train mmsegmentation segmentation/configs/upernet_own_data.py --gpus 1
#
# SEG_DATA holds images/training, images/validation, annotations/training, annotations/validation;
# a mask has the name of its image. Masks hold class ids from 0, in the order of SEG_CLASSES, and
# 255 for what is not labelled. SEG_SUFFIX=.png for pictures of that kind. For another model put its
# file in _base_; for other folders change them below.
_base_ = ["./upernet_srvit_s_t3.py"]
data_root = "{{$SEG_DATA:data/own}}"
classes = "{{$SEG_CLASSES:background,object}}".split(",")
num_classes = len(classes)
model = dict(
    decode_head=dict(num_classes=num_classes), auxiliary_head=dict(num_classes=num_classes)
)
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations"),
    dict(type="CheckMask", num_classes=num_classes),
    dict(type="RandomResize", scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=(512, 512), cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="Resize", scale=(2048, 512), keep_ratio=True),
    dict(type="LoadAnnotations"),
    dict(type="PackSegInputs"),
]
folders = dict(
    _delete_=True,
    type="CheckedSegDataset",
    data_root=data_root,
    img_suffix="{{$SEG_SUFFIX:.jpg}}",
    seg_map_suffix=".png",
    metainfo=dict(classes=classes),
)
train_dataloader = dict(
    dataset=dict(
        data_prefix=dict(img_path="images/training", seg_map_path="annotations/training"),
        pipeline=train_pipeline,
        **folders,
    )
)
val_dataloader = dict(
    dataset=dict(
        data_prefix=dict(img_path="images/validation", seg_map_path="annotations/validation"),
        pipeline=test_pipeline,
        **folders,
    )
)
test_dataloader = val_dataloader
del folders
