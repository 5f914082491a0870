"""What the configs in segmentation/ name: importing this registers all of it with mmseg."""

from srvit_backbone.quiet import silence_known_warnings, without_printed_lines

silence_known_warnings()
with without_printed_lines():
    from srvit_backbone.openmmlab import data, hooks, neck, runner

__all__ = ["data", "hooks", "neck", "runner"]
