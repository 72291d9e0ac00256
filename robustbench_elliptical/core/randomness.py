"""Randomness keyed on what it is for, never on when it is drawn.

A draw depends on (seed, stream name, sample key, further words) alone, so the result for a sample
is the same in any batch, order or worker, and no global generator is read or written. Philox is a
counter-based generator (Salmon et al. 2011), seeded through numpy's SeedSequence; its output is
specified bit for bit, so draws are the same on every machine and device.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["keyed_generator", "keyed_signs", "keyed_uniform", "sample_key"]


def sample_key(sample_id: str) -> int:
    """Return the 63-bit key of a sample id: a hash, the same on every machine."""
    digest = hashlib.blake2b(sample_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def keyed_generator(seed: int, stream: str, *words: int) -> np.random.Generator:
    """Return a generator that depends only on the arguments.

    Parameters
    ----------
    seed
        The run's seed, at least 0.
    stream
        What the draws are for ("pgd/start"), so that two uses never share numbers.
    words
        Further keys, each at least 0: a sample key, a restart, a step.
    """
    entropy = [seed, sample_key(stream), *words]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def keyed_uniform(
    seed: int, stream: str, keys: Iterable[int], shape: Sequence[int], *words: int
) -> npt.NDArray[np.float32]:
    """Draw uniform numbers in [0, 1), one independent array of `shape` for each sample key.

    Returns an array of shape ``(len(keys), *shape)``, float32.
    """
    draws = [
        keyed_generator(seed, stream, key, *words).random(tuple(shape), dtype=np.float32)
        for key in keys
    ]
    return np.stack(draws) if draws else np.empty((0, *shape), dtype=np.float32)


def keyed_signs(
    seed: int, stream: str, keys: Iterable[int], shape: Sequence[int], *words: int
) -> npt.NDArray[np.int8]:
    """Draw random signs (-1 or +1), one independent array of `shape` for each sample key.

    Returns an array of shape ``(len(keys), *shape)``, int8.
    """
    count = int(np.prod(shape))
    rows = []
    for key in keys:
        raw = keyed_generator(seed, stream, key, *words).bytes((count + 7) // 8)
        bits = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=count)
        rows.append((bits.astype(np.int8) * 2 - 1).reshape(tuple(shape)))
    return np.stack(rows) if rows else np.empty((0, *shape), dtype=np.int8)
