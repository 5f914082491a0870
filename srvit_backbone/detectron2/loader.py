"""A training stream for Detectron2 that continues exactly where it was."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from detectron2.data import DatasetFromList
from detectron2.data.build import trivial_batch_collator
from detectron2.utils import comm
from torch.utils.data import DataLoader, Dataset

from srvit_backbone.errors import InputError
from srvit_backbone.training.stream import StreamSampler, seeded

logger = logging.getLogger(__name__)


class SeededSamples(Dataset):
    """Images by (position, index), the randomness of each drawn from (seed, position) alone.

    Args:
        dataset: The images' dicts.
        mapper: Dict to model input; its randomness may be NumPy's, Python's or torch's.
        seed: Of the whole stream.
    """

    def __init__(self, dataset: Sequence[dict], mapper: Callable[[dict], dict], seed: int) -> None:
        self.dataset, self.mapper, self.seed = dataset, mapper, seed

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, key: tuple[int, int]) -> dict[str, Any]:
        position, index = key
        image = self.dataset[index]
        with seeded(self.seed, position):
            try:
                return self.mapper(image)
            except Exception as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise InputError(f"{image['file_name']} cannot be used: {reason}") from error


def build_train_loader(
    dataset: list[dict],
    *,
    mapper: Callable[[dict], dict],
    total_batch_size: int,
    num_workers: int = 0,
    seed: int = 0,
    start_iter: int = 0,
) -> DataLoader:
    """Endless batches (lists of dicts) for training, the same after any interruption.

    Args:
        dataset: Detectron2's dicts of images, e.g. from ``get_detection_dataset_dicts``.
        mapper: Detectron2's DatasetMapper, or any callable like it.
        total_batch_size: Images a step over all processes.
        num_workers: Loading processes of each process; they do not change what is loaded.
        seed: Of the order and the augmentations.
        start_iter: Iterations already done.

    Raises:
        InputError: The batch cannot be divided by the number of processes.
    """
    processes = comm.get_world_size()
    if total_batch_size < 1 or total_batch_size % processes:
        raise InputError(
            f"dataloader.train.total_batch_size={total_batch_size} must be a multiple of the "
            f"{processes} processes"
        )
    cleaned = [_without_degenerate_polygons(image) for image in dataset]
    samples = SeededSamples(DatasetFromList(cleaned, copy=False), mapper, seed)
    return DataLoader(
        samples,
        batch_size=total_batch_size // processes,
        sampler=StreamSampler(
            len(samples), seed, start_iter * total_batch_size, comm.get_rank(), processes
        ),
        num_workers=num_workers,
        collate_fn=trivial_batch_collator,
        drop_last=True,
    )


def _without_degenerate_polygons(image: dict) -> dict:
    """Drop polygons of fewer than 3 points, on which cropping stops, and objects of only such."""
    if "annotations" not in image:
        return image
    kept = []
    for note in image["annotations"]:
        outline = note.get("segmentation")
        if isinstance(outline, list):
            polygons = [polygon for polygon in outline if len(polygon) >= 6]
            if outline and not polygons:
                logger.warning("%s: an object without area is left out", image["file_name"])
                continue
            note = {**note, "segmentation": polygons}  # noqa: PLW2901
        kept.append(note)
    return {**image, "annotations": kept}
