"""What a rerun needs to know: versions, commit, hashes of what was evaluated."""

import hashlib
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from robustbench_elliptical import __version__
from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.models import EvaluatedLanguageModel, ImageClassifier, state_sha256
from robustbench_elliptical.results import ModelRecord

__all__ = ["ImageHash", "git_commit", "model_record", "versions"]

_LIBRARIES = ("torch", "torchvision", "timm", "numpy", "scipy", "pandas")


class ImageHash:
    """A running SHA-256 over the ids, labels and pixels of the batches seen."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.samples = 0
        """Samples seen so far."""

    def update(self, batch: ImageBatch) -> None:
        """Add a batch; how samples are split into batches does not matter."""
        self.samples += len(batch.labels)
        rows = zip(batch.sample_ids, batch.labels.tolist(), batch.images, strict=True)
        for sample_id, label, image in rows:
            self._hash.update(f"{sample_id}\0{label}\0{tuple(image.shape)}\0".encode())
            self._hash.update(image.cpu().numpy().tobytes())

    def hexdigest(self) -> str:
        """Return the hash so far."""
        return self._hash.hexdigest()


def model_record(model: ImageClassifier | EvaluatedLanguageModel) -> ModelRecord:
    """Return what a result says of a model."""
    description = model.description
    return ModelRecord(
        name=model.name,
        family=description.family or model.name,
        seed=description.seed,
        weights_sha256=description.weights_sha256 or state_sha256(model.network.state_dict()),
        description=description.model_dump(mode="json"),
    )


def versions() -> dict[str, str]:
    """Return the versions of this package, Python and the libraries that compute."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"robustbench-elliptical": __version__, "python": platform.python_version(), **libraries}


def git_commit() -> str | None:
    """Return the commit of the checkout this package runs from, none outside a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return f"{commit}-dirty" if _git(root, "status", "--porcelain") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *words: str) -> str:
    finished = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return finished.stdout.strip()
