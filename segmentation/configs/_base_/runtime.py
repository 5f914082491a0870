default_scope = "mmseg"
# Another batch (images a step), a limit of memory such as "12GB"; 0 and "": the recipe as it is.
runner_type = "CheckingRunner"
fit = dict(batch=0, memory="")
env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0),
    dist_cfg=dict(backend="nccl"),
)
visualizer = dict(
    type="SegLocalVisualizer",
    vis_backends=[dict(type="LocalVisBackend"), dict(type="TensorboardVisBackend")],
    name="visualizer",
)
custom_hooks = [dict(type="RunChecks"), dict(type="SeedIterations"), dict(type="WriteResults")]
randomness = dict(seed=0)
log_processor = dict(by_epoch=False)
log_level = "INFO"
load_from = None
resume = False
tta_model = dict(type="SegTTAModel")
