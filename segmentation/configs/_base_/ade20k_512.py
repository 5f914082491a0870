# ADE20K, 512 x 512 crops. The data set is found by the environment variable ADE20K, which names the
# folder with images/ and annotations/.
data_root = "{{$ADE20K:data/ade/ADEChallengeData2016}}"
num_classes = 150
crop_size = (512, 512)
train_pipeline = [
    dict(type="LoadPicture"),
    dict(type="LoadMask"),
    dict(type="RandomResize", scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=crop_size, cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadPicture"),
    dict(type="Resize", scale=(2048, 512), keep_ratio=True),
    # Behind Resize: labels are compared in the picture's own size.
    dict(type="LoadMask"),
    dict(type="PackSegInputs"),
]
# The published multi-scale figures resize to ratios of 2048 x 512; mmseg 1.x's own list scales the
# raw picture instead, which is another measurement.
tta_pipeline = [
    dict(type="LoadPicture"),
    dict(
        type="TestTimeAug",
        transforms=[
            [
                dict(type="Resize", scale=(int(2048 * ratio), int(512 * ratio)), keep_ratio=True)
                for ratio in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
            ],
            [
                dict(type="RandomFlip", prob=probability, direction="horizontal")
                for probability in (0.0, 1.0)
            ],
            [dict(type="LoadMask")],
            [dict(type="PackSegInputs")],
        ],
    ),
]
train_dataloader = dict(
    batch_size=2,  # x 8 GPUs = 16
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="StreamSegSampler"),
    dataset=dict(
        type="CheckedADE20KDataset",
        data_root=data_root,
        data_prefix=dict(img_path="images/training", seg_map_path="annotations/training"),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type="CheckedADE20KDataset",
        data_root=data_root,
        data_prefix=dict(img_path="images/validation", seg_map_path="annotations/validation"),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type="IoUMetric", iou_metrics=["mIoU"])
test_evaluator = val_evaluator
