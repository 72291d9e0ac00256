"""Elliptical attention against softmax attention, through the same fused kernel."""

import torch

from benchmarks.rows import Row, Size
from benchmarks.subjects import deit_tiny
from benchmarks.timing import compare

__all__ = ["elliptical_forward"]

TARGET = 1.15


@torch.no_grad()
def elliptical_forward(size: Size) -> list[Row]:
    """Compare the forward of two DeiT-tiny of equal weights that differ in their attention."""
    elliptical, softmax = deit_tiny("deit-tiny-elliptical"), deit_tiny("deit-tiny-softmax")
    images = torch.rand(size.images, 3, 224, 224)
    ratio = compare(lambda: elliptical(images), lambda: softmax(images), size.budget)
    measured = "forward of deit_tiny_patch16_224, elliptical"
    return [Row("elliptical", measured, "the same, softmax", ratio, TARGET, size.images)]
