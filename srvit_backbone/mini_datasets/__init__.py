"""Small real data sets, made without a download from pictures inside Python packages."""

from srvit_backbone.mini_datasets.coins import write_coins
from srvit_backbone.mini_datasets.digits import write_digits

__all__ = ["write_coins", "write_digits"]
