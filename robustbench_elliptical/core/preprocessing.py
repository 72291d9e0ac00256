"""How a photograph becomes a model's input, as a value: the card states it, the data applies it."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["IMAGENET", "Preprocessing"]


class Preprocessing(BaseModel):
    """Resize, then cut out the centre."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image_size: int = Field(ge=1, le=8192)
    """Height and width that the model gets."""
    resize: int | None = Field(default=None, ge=1, le=8192)
    """Length of the shorter side before the crop. None: images are not resized, for sets such as
    ImageNet-C whose images were cropped already."""
    crop: Literal["center", "squash"] = "center"
    """What `resize` keeps: ``center`` the aspect ratio, ``squash`` nothing (both sides become
    `resize` long). Either way the centre square of `image_size` is cut out."""
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bicubic"
    """Filter of the resize, with antialiasing (except ``nearest``)."""
    channels: Literal[1, 3] = 3
    """3 turns every image to RGB, 1 to grey. Transparency is dropped."""

    @model_validator(mode="after")
    def _crop_fits(self) -> Self:
        if self.resize is not None and self.resize < self.image_size:
            raise ValueError(
                f"resize must be at least image_size ({self.image_size}), or the crop would pad "
                f"with black, got {self.resize}"
            )
        return self


IMAGENET = Preprocessing(image_size=224, resize=256)
"""ImageNet's usual evaluation: shorter side 256, bicubic, centre 224."""
