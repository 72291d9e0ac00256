"""Photographs in one folder a class, as ImageNet's validation set is usually laid out."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.preprocessing import IMAGENET, Preprocessing
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.data.preprocessing import read_image
from robustbench_elliptical.data.sources import DATA, DataRequest, DataSource
from robustbench_elliptical.data.streams import existing, reading

__all__ = ["ImageFolder"]

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})
_IMAGENET_CLASSES = 1000
_SYNSET = re.compile(r"n\d{8}")


class ImageFolder(ImageData):
    """The images ``FOLDER/CLASS/IMAGE``; deeper folders and hidden entries are passed over.

    Labels are positions among the sorted class folders, an empty folder included. A set for a
    model of 1,000 classes whose folders are all named after ImageNet-1k synsets ("n01440764") is
    labelled by their position among all 1,000 instead, so that a part of ImageNet scores right.

    Parameters
    ----------
    folder
        Holds the class folders.
    preprocessing
        How images of any size become the model's.
    num_classes
        Classes of the model. Folders that can't be matched with them are refused.

    Raises
    ------
    UsageError
        If there is nothing to read, or the folders don't match the model's classes.
    """

    def __init__(
        self,
        folder: Path,
        preprocessing: Preprocessing | None = None,
        num_classes: int | None = None,
    ) -> None:
        name = f"imagefolder:{folder}"
        existing(folder, "folder", "give the folder whose sub-folders are the classes")
        self.preprocessing = preprocessing or IMAGENET
        self._folder = folder
        found = {each: _images(folder / each) for each in _class_folders(folder)}
        if not any(found.values()):
            raise UsageError(
                f"data {name}: no image of type {', '.join(sorted(_SUFFIXES))} lies in its "
                "sub-folders; give the folder whose sub-folders are the classes"
            )
        classes = _class_list(name, list(found), num_classes)
        position = {each: label for label, each in enumerate(classes)}
        self._files = [f"{each}/{file}" for each, files in found.items() for file in files]
        labels = [position[each] for each, files in found.items() for _ in files]
        size = self.preprocessing.image_size
        super().__init__(
            name,
            np.array(labels, dtype=np.int64),
            [f"imagefolder/{file}" for file in self._files],
            len(classes),
            image_shape=(self.preprocessing.channels, size, size),
            class_names=classes,
        )

    def _read(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        out = np.empty((len(indices), *self.image_shape), dtype=np.uint8)
        for place, index in enumerate(indices):
            out[place] = read_image(self._folder / self._files[index], self.preprocessing)
        return out


def _class_folders(folder: Path) -> list[str]:
    with reading(folder), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    return _visible(folder, names)


def _images(folder: Path) -> list[str]:
    with reading(folder), os.scandir(folder) as entries:
        # A broken link is kept: it's refused by name when it's read.
        names = [
            entry.name
            for entry in entries
            if entry.is_file() or (entry.is_symlink() and not entry.is_dir())
        ]
    return _visible(folder, [name for name in names if Path(name).suffix.lower() in _SUFFIXES])


def _visible(folder: Path, names: Sequence[str]) -> list[str]:
    visible = sorted(name for name in names if not name.startswith("."))
    for name in visible:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{folder}: names must be UTF-8, got {name!r}; rename it") from None
    return visible


def _class_list(data: str, folders: list[str], num_classes: int | None) -> list[str]:
    """Return the class names by label.

    Raises
    ------
    UsageError
        If the folders can't be matched with `num_classes`.
    """
    if num_classes == _IMAGENET_CLASSES and any(_SYNSET.fullmatch(each) for each in folders):
        synsets = _imagenet_synsets()
        strangers = sorted(set(folders) - set(synsets))
        if not strangers:
            return synsets
        if len(strangers) < len(folders):
            raise UsageError(
                f"data {data}: some folders are ImageNet-1k synsets and some are not, got "
                f"{', '.join(strangers[:3])}; move those away so that labels are certain"
            )
    if num_classes is not None and num_classes != len(folders):
        raise UsageError(
            f"data {data}: the model has {num_classes} classes but there are {len(folders)} class "
            "folders, so their labels are uncertain; add an empty folder for each missing class"
        )
    return folders


def _imagenet_synsets() -> list[str]:
    from timm.data import ImageNetInfo  # Takes seconds to import.

    return [str(name) for name in ImageNetInfo("imagenet-1k").label_names()]


def _load(request: DataRequest) -> ImageData:
    assert request.place is not None
    return ImageFolder(request.place, request.preprocessing, request.num_classes)


DATA.add("imagefolder", DataSource(("imagefolder:DIR",), _load))
