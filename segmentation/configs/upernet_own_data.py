# Your own pictures and masks, without editing anything:
#
#   SEG_DATA=data/streets SEG_CLASSES=road,car,person \
#       mim train mmsegmentation segmentation/configs/upernet_own_data.py --gpus 1
#
# SEG_DATA is a folder with pictures and masks, whose layout is recognised: images/training and
# annotations/training, train/images and train/masks, train and trainannot, ...; without a
# validation split a fifth is drawn. A mask has the name of its picture, or that with something
# constant around it. Masks hold class ids from 0, in the order of SEG_CLASSES, and 255 for what is
# not labelled. For other ids, or colours, SEG_CLASSES is a file:
#
#   classes: {road: 0, car: [1, 2], person: {color: [64, 64, 0]}}
#   ignore: [11, 255]
#
# SEG_EXIF=upright or stored where masks of turned photographs do not tell; SEG_CHECK=no skips the
# check. For another model put its file in _base_.
_base_ = ["./upernet_srvit_s_t3.py"]
data_root = "{{$SEG_DATA:data/own}}"
seg_classes = "{{$SEG_CLASSES:background,object}}"
exif = "{{$SEG_EXIF:auto}}"
check = "{{$SEG_CHECK:yes}}" != "no"  # noqa: PLR0133  MMEngine puts the value there
# The heads get as many classes as SEG_CLASSES names when the run starts.
train_pipeline = [
    dict(type="LoadPicture"),
    dict(type="LoadMask"),
    dict(type="RandomResize", scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=(512, 512), cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadPicture"),
    dict(type="Resize", scale=(2048, 512), keep_ratio=True),
    dict(type="LoadMask"),
    dict(type="PackSegInputs"),
]
folders = dict(
    _delete_=True,
    type="CheckedSegDataset",
    data_root=data_root,
    seg_classes=seg_classes,
    exif=exif,
    check=check,
)
train_dataloader = dict(dataset=dict(split="train", pipeline=train_pipeline, **folders))
val_dataloader = dict(dataset=dict(split="val", pipeline=test_pipeline, **folders))
test_dataloader = val_dataloader
del folders
