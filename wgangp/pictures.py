"""What was generated -> one PNG picture: images in a grid, vectors as points."""

import io
import math

import numpy as np
from PIL import Image

_SIDE = 256
"""Pixels of the picture of vectors."""


def draw(generated: np.ndarray, *, real: np.ndarray) -> bytes:
    """PNG of uint8 images [n, H, W, C], or of vectors float32 [n, D] in -1..1 before real ones [N, D]."""
    return points(generated, real=real) if generated.ndim == 2 else grid(generated)


def grid(images: np.ndarray) -> bytes:
    """PNG of uint8 images [n, H, W, C], as square as can be, row by row; what is left is black.

    Of 3 channels or more the first three are shown as colours, of fewer the first as grey.
    """
    count, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    cells = np.zeros((rows * columns, height, width, channels), np.uint8)
    cells[:count] = images
    cells = cells.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    picture = cells.reshape(rows * height, columns * width, channels)
    return _png(picture[..., :3] if channels >= 3 else picture[..., 0])


def points(vectors: np.ndarray, *, real: np.ndarray) -> bytes:
    """PNG of the first two coordinates, -1..1 to the right and up: real grey, generated blue on top.

    Of one coordinate the second is 0.
    """
    picture = np.full((_SIDE, _SIDE, 3), 255, np.uint8)
    for of, colour in ((real, (200, 200, 200)), (vectors, (30, 60, 200))):
        right, up = of[:, 0], of[:, 1] if of.shape[1] > 1 else np.zeros(len(of))
        columns, rows = (np.rint((part + 1) / 2 * (_SIDE - 1)).astype(int) for part in (right, -up))
        picture[rows, columns] = colour
    return _png(picture)


def _png(picture: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()
