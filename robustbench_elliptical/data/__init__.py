"""Data sets of labelled images, registered by name in `DATA` and opened by `load_data`.

A new data set is a new file here that subclasses `ImageData` and adds itself to `DATA`; import it
below.
"""

from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.data.base import ImageBatch, ImageData, ImageShape
from robustbench_elliptical.data.fashion_mnist import EmbeddedFashionMnist, FashionMnist
from robustbench_elliptical.data.imagefolder import ImageFolder
from robustbench_elliptical.data.loading import load_data
from robustbench_elliptical.data.npz import NpzData
from robustbench_elliptical.data.sources import DATA, DataRequest, DataSource, Split
from robustbench_elliptical.data.subset import select

__all__ = [
    "DATA",
    "DataRequest",
    "DataSource",
    "EmbeddedFashionMnist",
    "FashionMnist",
    "ImageBatch",
    "ImageData",
    "ImageFolder",
    "ImageShape",
    "NpzData",
    "Preprocessing",
    "Split",
    "load_data",
    "select",
]
