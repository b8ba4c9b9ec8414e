import io

import numpy as np
import pytest
from PIL import Image

from wgangp import pictures


@pytest.mark.parametrize(("count", "channels", "side"), [(4, 1, 2), (5, 3, 3), (64, 1, 8)])
def test_a_grid_shows_the_images_row_by_row(count: int, channels: int, side: int) -> None:
    levels = np.arange(1, count + 1, dtype=np.uint8)[:, None, None, None]
    picture = np.asarray(Image.open(io.BytesIO(pictures.grid(np.tile(levels, (1, 2, 3, channels))))))

    first_pixels = picture.reshape(picture.shape[0], picture.shape[1], channels)[::2, ::3, 0].ravel()
    assert first_pixels[:count].tolist() == list(range(1, count + 1))
    assert not first_pixels[count:].any()
    assert picture.shape[1] == 3 * side
