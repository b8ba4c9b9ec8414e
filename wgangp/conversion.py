"""What users have -> what is trained on: uint8 images of one size and channels; or float32 vectors in -1..1.

The rule for a picture, stated in the README too: it is turned as its EXIF data says; 16 bits become 8; what
is transparent is laid over white; the largest square in its middle is cut out and resized by Lanczos's
antialiased filter; colour becomes grey as 0.299 R + 0.587 G + 0.114 B. `image_folder` and `datasets` call it.
"""

from pathlib import Path

import numpy as np
import psutil
from PIL import Image, ImageOps

from wgangp.errors import UserError

_COPIES = 3
"""Times the images lie in memory while they are prepared: whole, split, and on their way to the cache."""
_GREY = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N")
_MOST_PIXELS = 150_000_000


def probe(path: Path) -> tuple[int, int, int]:
    """Width, height and channels (1 or 3) of an image file, from its head.

    Raises:
        OSError, ValueError: it is none.
    """
    with Image.open(path) as image:
        width, height = image.size
        if width * height > _MOST_PIXELS:
            raise ValueError(f"too large: {width}x{height}")
        if image.mode == "F":
            raise ValueError("real numbers of no stated range")
        if image.getexif().get(0x0112, 1) >= 5:  # lies on its side
            width, height = height, width
        return width, height, 1 if image.mode in _GREY else 3


def read(path: Path, *, size: int | None, channels: int) -> np.ndarray:
    """uint8 [H, W, channels] of an image file; `size` both sides, None: as they are.

    Raises:
        OSError, ValueError: it is no image, or not a whole one.
    """
    with Image.open(path) as image:
        image.load()
        return _pixels(ImageOps.exif_transpose(image), size=size, channels=channels)


def refit(images: np.ndarray, *, size: int | None, channels: int | None) -> np.ndarray:
    """uint8 images [N, H, W, C] by the same rule; they stay as they are where that is what is asked for.

    Raises:
        UserError: so many channels cannot be made of these.
    """
    _, height, width, found = images.shape
    channels = channels or found
    if (height, width, found) == (size or height, size or width, channels):
        return images
    if {found, channels} - {1, 3, 4} or (channels == 4 != found):
        raise UserError(
            f"channels: can be made 1 or 3 of images of 1, 3 or 4 channels, got {found}; leave channels and"
            " image_size out, or convert the images yourself."
        )
    sides = (size or height, size or width)
    fitted = np.empty((len(images), *sides, channels), np.uint8)
    for place, pixels in enumerate(images):
        image = Image.fromarray(pixels[..., 0] if found == 1 else pixels)
        fitted[place] = _pixels(image, size=size, channels=channels)
    return fitted


def from_range(values: np.ndarray, data_range: tuple[float, float]) -> np.ndarray:
    """Numbers in a stated range -> float32 in -1..1.

    Raises:
        UserError: one lies outside, or is not finite.
    """
    low, high = data_range
    found = float(values.min()), float(values.max())
    if not low <= found[0] <= found[1] <= high:  # also false of NaN
        raise UserError(
            f"data_range: must hold every value, got values of {found[0]:g}..{found[1]:g} outside"
            f" {low:g}..{high:g}; state the range they have."
        )
    return ((values.astype(np.float64) - low) * (2 / (high - low)) - 1).astype(np.float32)


def check_memory(shape: tuple[int, ...], *, itemsize: int = 1) -> None:
    """Raises: UserError, if there is no memory for an array of this shape."""
    need, free = _COPIES * float(np.prod(shape, dtype=float)) * itemsize, psutil.virtual_memory().available
    if need > free:
        raise UserError(
            f"dataset: needs {need / 1e9:,.1f} GB of memory ({shape[0]:,} of {'x'.join(map(str, shape[1:]))},"
            f" {_COPIES} times), {free / 1e9:,.1f} GB are free; make them fewer or smaller (image_size)."
        )


def _pixels(image: Image.Image, *, size: int | None, channels: int) -> np.ndarray:
    image = _eight_bits(image)
    if channels != 4 and (image.mode in ("RGBA", "LA", "La", "RGBa", "PA") or "transparency" in image.info):
        above = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above)
    image = image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), Image.Resampling.LANCZOS)
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _eight_bits(image: Image.Image) -> Image.Image:
    """Pillow's own way from 16 bits to 8 cuts everything above 255 off."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        levels = np.asarray(image).astype(np.float64).clip(0, 65535) / 257
        return Image.fromarray(np.rint(levels).astype(np.uint8))
    return image
