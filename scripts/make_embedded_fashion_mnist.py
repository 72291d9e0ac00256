"""Make the Fashion-MNIST file that ships with the package: 2,000 test images, 200 of each class.

    python scripts/make_embedded_fashion_mnist.py DIR [OUTPUT]

DIR is the folder of the full set's idx files; Debian's package dataset-fashion-mnist installs them
in /usr/share/datasets/fashion-mnist. The images are under the MIT licence, copyright 2017 Zalando
SE. The same input gives the same bytes (with one version of zlib).
"""

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from robustbench_elliptical.data.fashion_mnist import CLASS_NAMES, FashionMnist
from robustbench_elliptical.data.subset import select

COUNT = 2000
SEED = 0
OUTPUT = (
    Path(__file__).parent.parent
    / "robustbench_elliptical/data/embedded/fashion-mnist-test-2000.npz"
)


def main(folder: Path, output: Path = OUTPUT) -> None:
    """Write `output` from the idx files in `folder`."""
    data = FashionMnist(folder, "test")
    chosen = select(data, COUNT, SEED)
    (batch,) = data.batches(chosen, COUNT)
    arrays = {
        "images": (batch.images[:, 0] * 255).round().byte().numpy(),
        "labels": batch.labels.byte().numpy(),
        "sample_ids": np.array(batch.sample_ids),
        "class_names": np.array(CLASS_NAMES),
    }
    with zipfile.ZipFile(output, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy")  # Dated 1980: the bytes tell no time.
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, buffer.getvalue(), compresslevel=9)
    content = output.read_bytes()
    print(f"{output}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*(Path(argument) for argument in sys.argv[1:]))
