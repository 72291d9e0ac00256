"""Prepare a photograph of any size and mode for a model: resize, crop, channels.

Every number here moves accuracy by whole points (a model trained with bicubic 256/224 loses about
two under another crop), so results carry the settings and the pixels equal torchvision's.
"""

import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing

__all__ = ["prepare", "read_image"]

_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
_RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_MAX_PIXELS = 1 << 28
_SIXTEEN_BITS = 65535


def prepare(image: Image.Image, preprocessing: Preprocessing) -> npt.NDArray[np.uint8]:
    """Return the prepared image, shape (channels, image_size, image_size).

    Raises
    ------
    ValueError
        If the image is too small to crop or too elongated to resize.
    """
    length = preprocessing.image_size
    image = _with_mode(image, "RGB" if preprocessing.channels == 3 else "L")
    size = _resized(image.width, image.height, preprocessing)
    if size[0] * size[1] > _MAX_PIXELS:
        raise ValueError(f"its size {image.width}x{image.height} is too elongated to resize")
    if size != image.size:
        image = image.resize(size, _RESAMPLING[preprocessing.interpolation])
    if min(size) < length:
        raise ValueError(f"it is {size[0]}x{size[1]}, too small for {length}x{length}; set resize")
    left, top = (round((side - length) / 2.0) for side in size)
    image = image.crop((left, top, left + length, top + length))
    pixels = np.array(image, dtype=np.uint8).reshape(length, length, -1)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _resized(width: int, height: int, preprocessing: Preprocessing) -> tuple[int, int]:
    resize = preprocessing.resize
    if resize is None:
        return width, height
    if preprocessing.crop == "squash":
        return resize, resize
    if width <= height:
        return resize, int(resize * height / width)
    return int(resize * width / height), resize


def read_image(path: Path, preprocessing: Preprocessing) -> npt.NDArray[np.uint8]:
    """Return the prepared image of a file, shape (channels, image_size, image_size).

    The first frame counts; an orientation tag is not applied, as in torchvision's loaders.

    Raises
    ------
    UsageError
        If the file can't be read as an image, naming it.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns about odd metadata and about large images; both are read all the same.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_FORMATS) as image:
                image.load()
                return prepare(image, preprocessing)
    except Exception as error:  # A decoder raises whatever a broken file makes it raise.
        unidentified = isinstance(error, UnidentifiedImageError)
        reason = "no image format matches" if unidentified else str(error).split("\n")[0]
        raise UsageError(
            f"cannot read image {path}: {reason or type(error).__name__}; replace or remove it"
        ) from None


def _with_mode(image: Image.Image, mode: str) -> Image.Image:
    if image.mode == mode:
        return image
    if image.mode.startswith("I"):
        # Pillow would clip 16-bit grey at 255.
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > _SIXTEEN_BITS:
            raise ValueError("its grey values need more than 16 bits")
        image = Image.fromarray(np.round(values / 257).astype(np.uint8))
    elif image.mode == "F":
        raise ValueError("its pixels are floating-point numbers of unknown range")
    elif image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert(mode)
