"""What went on inside an image classifier on a few images, clean and under attack."""

from robustbench_elliptical.results.records import Record

__all__ = ["Estimate", "InternalsRecord", "MetricRecord", "PictureRecord"]


class Estimate(Record):
    """A mean over images."""

    mean: float
    """The mean."""
    low: float
    """Lower end of Student's 95 % interval of the mean; the mean itself for one image."""
    high: float
    """Upper end."""


class MetricRecord(Record):
    """The metric of Elliptical Attention in one block."""

    block: int
    """Position of the block, from 0."""
    mean: list[list[float]]
    """Diagonal of the metric, head by head, component by component, averaged over images."""
    change: list[Estimate]
    """For each head the absolute difference from the metric of the same clean image, averaged over
    components; empty for `clean`."""


class InternalsRecord(Record):
    """The inside of one model under one attack at one epsilon."""

    model: str
    """Name of the model."""
    attack: str
    """Label of the attack; `clean` for none."""
    norm: str | None
    """Norm of epsilon; none for `clean`."""
    epsilon: float
    """In [0, 1] pixels; 0 for `clean`."""
    samples: int
    """Images averaged over: those of the examples that the model classifies right and the attack
    did not fail on."""
    token_similarity: list[Estimate]
    """Mean cosine of the angle between two different tokens: of the tokens that enter the first
    block, then after every block. Near 1, the tokens have collapsed to one."""
    attention_iou: list[Estimate]
    """For each block the Attention-IoU (arXiv 2503.19846) of the class token's attention to the
    patches, averaged over heads, with that of the same clean image; empty for `clean` and where
    the attention is no map over patches."""
    metric: list[MetricRecord]
    """One for each block that estimates a metric."""


class PictureRecord(Record):
    """One image before and after an attack. Its arrays are in `pictures.safetensors`."""

    key: str
    """Arrays `KEY/clean` and `KEY/attacked`, float16 pixels in [0, 1] of shape (channels, height,
    width), and, where the attention is a map over patches, `KEY/clean-attention` and
    `KEY/attacked-attention`, float16 of shape (rows, columns): the class token's attention in the
    last block, averaged over heads, with sum 1."""
    model: str
    """Name of the model."""
    attack: str
    """Label of the attack."""
    norm: str
    """Norm of epsilon."""
    epsilon: float
    """In [0, 1] pixels."""
    sample_id: str
    """Id of the image, as in `samples.csv`."""
    label: int
    """True class."""
    clean_prediction: int
    """Class predicted for the clean image."""
    prediction: int
    """Class predicted for the attacked image."""
