"""Images -> one PNG picture of a grid of them."""

import io
import math

import numpy as np
from PIL import Image


def grid(images: np.ndarray) -> bytes:
    """PNG of uint8 images [n, H, W, C], C 1 or 3, as square as can be, row by row; what is left is black."""
    count, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    cells = np.zeros((rows * columns, height, width, channels), np.uint8)
    cells[:count] = images
    cells = cells.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    picture = cells.reshape(rows * height, columns * width, channels)
    file = io.BytesIO()
    Image.fromarray(picture[..., 0] if channels == 1 else picture).save(file, "PNG")
    return file.getvalue()
