"""Turn the best weights of a pretraining run into the file that the configs load by default.

    python tools/publish_weights.py output/pretrain/srvit_s_t3
    python tools/publish_weights.py --check

Writes pretrained/<variant>.safetensors and records it (variant, recipe, resolution, top-1, sha256,
command, git revision) in pretrained/index.json and as a line of the table in pretrained/README.md.
--check compares the files there with the index.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "pretrained"


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, help="output folder of a run")
    parser.add_argument("--check", action="store_true", help="compare files and records")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default pretrained/")
    args = parser.parse_args(arguments)
    if not args.check and args.run is None:
        parser.error("name a run, or --check")
    return args


def main(args: Namespace) -> None:
    """Check or publish."""
    from srvit_backbone.pretrain.publish import check, publish

    if args.check:
        check(args.folder)
        return
    record = publish(args.run, args.folder)
    print(f"{record['variant']}: top-1 {record['top1']}, sha256 {record['sha256']}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
