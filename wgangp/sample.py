"""The command line that draws from a trained generator: `python -m wgangp.sample runs/gp-0001/best`."""

import argparse
import sys
from pathlib import Path

from wgangp import files
from wgangp.errors import UserError
from wgangp.quiet import import_tensorflow

MOST = 10_000
"""Images in one picture."""


def main(arguments: list[str] | None = None) -> int:
    """Write one picture of samples; 0, or 2 for a mistake of the user's."""
    options = _parser().parse_args(arguments)
    try:
        print(f"{options.count} samples: {_draw(options)}")
        return 0
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def _draw(options: argparse.Namespace) -> Path:
    if not 1 <= options.count <= MOST:
        raise UserError(f"--count: must be 1 to {MOST}, got {options.count}.")
    if not options.generator.exists():
        raise UserError(f"{options.generator}: must be a folder or a file that is there; see --help.")
    import_tensorflow()
    import numpy as np
    import tensorflow as tf

    from wgangp import export, networks, pictures
    from wgangp.randomness import Purpose

    generator = export.load(options.generator)
    images = networks.sample(
        tf.function(generator),
        count=options.count,
        latent_size=generator.inputs[0].shape[1],
        dtype=generator.inputs[0].dtype,
        seed=options.seed,
        purpose=Purpose.GRID_NOISE,
    )
    drawn = networks.to_data(np.concatenate(list(images)))
    out = options.out.resolve()
    try:
        files.write(out, pictures.draw(drawn, real=drawn[:0]))
    except OSError as error:
        raise UserError(f"--out {options.out}: cannot be written: {error.strerror}.") from error
    return out


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wgangp.sample", description="Draw images from a trained generator."
    )
    parser.add_argument(
        "generator",
        type=Path,
        help="what holds a generator.keras: <sweep>/best, or the folder of a run of wgangp.train",
    )
    parser.add_argument("--count", type=int, default=64, metavar="N", help=f"images, 1 to {MOST} [64]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed, the same images [0]")
    parser.add_argument(
        "--out", type=Path, default=Path("samples.png"), metavar="FILE", help="the picture [samples.png]"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
