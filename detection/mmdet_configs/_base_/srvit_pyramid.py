# SR-ViT-S and the Simple Feature Pyramid of ViTDet. A detector's config puts the two into its
# model, where they replace ResNet and FPN.
custom_imports = dict(imports=["srvit_backbone.openmmlab"], allow_failed_imports=False)
srvit = dict(
    _delete_=True,
    type="SRViTBackbone",
    variant="srvit_s_t3",
    img_size=1024,
    out_indices=(-1,),
    final_norm=True,
    drop_path_rate=0.1,
    pretrained="pretrained/srvit_s_t3.safetensors",
)
pyramid = dict(_delete_=True, type="SimpleFeaturePyramid", in_channels=384, out_channels=256)
# For detectors that start at stride 8.
pyramid_from_8 = dict(scales=(2, 1, 0.5), add_extra_convs=True, **pyramid)
