"""Open a data set by what the user wrote."""

from pathlib import Path

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.data.sources import DATA, DataRequest, Split

__all__ = ["load_data"]

_SPLITS = ("test", "train")


def load_data(
    spec: str,
    *,
    preprocessing: Preprocessing | None = None,
    num_classes: int | None = None,
    split: Split = "test",
) -> ImageData:
    """Open the data set `spec`.

    Parameters
    ----------
    spec
        ``fashion-mnist``, ``fashion-mnist:DIR``, ``imagefolder:DIR``, ``npz:FILE`` or another
        registered name; ``~`` is the home folder.
    preprocessing
        How to prepare the images of a folder; sets of arrays are taken as they are.
    num_classes
        Classes of the model that the set is for.
    split
        Which part, of a set that has parts; a folder or an npz file is whatever part it holds.

    Raises
    ------
    UnknownNameError
        If no data set has the name.
    UsageError
        If the set can't be opened or has a number of classes other than `num_classes`.
    """
    if split not in _SPLITS:
        raise UsageError(f"split must be test or train, got {split!r}")
    name, colon, rest = (part.strip() for part in spec.partition(":"))
    if name not in DATA:
        ways = ", ".join(sorted(way for known in DATA for way in DATA[known].usage))
        raise UnknownNameError("data set", name, DATA, f"Write one of {ways}.")
    source = DATA[name]
    form = f"{name}:" if colon else name
    if (colon and not rest) or not any(_fits(way, form) for way in source.usage):
        raise UsageError(f"data must be written {' or '.join(source.usage)}, got {spec!r}")
    request = DataRequest(_path(rest) if colon else None, split, preprocessing, num_classes)
    data = source.load(request)
    if num_classes is not None and data.num_classes != num_classes:
        raise UsageError(
            f"data {data.name} has {data.num_classes} classes but the model has {num_classes}; "
            "choose a data set of the model's own classes"
        )
    return data


def _fits(way: str, form: str) -> bool:
    return way.startswith(form) if form.endswith(":") else way == form


def _path(text: str) -> Path:
    if "\0" in text:
        raise UsageError(f"a path can't hold a null character, got {text!r}")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(f"no home folder is known for {text!r}; write the whole path") from None
