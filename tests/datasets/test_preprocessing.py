import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from robustbench_elliptical.core.preprocessing import IMAGENET, Preprocessing
from robustbench_elliptical.data.preprocessing import prepare, read_image

GENERATOR = np.random.default_rng(0)


def photograph(width, height, bands=3):
    shape = (height, width, bands) if bands > 1 else (height, width)
    return Image.fromarray(GENERATOR.integers(0, 256, shape, dtype=np.uint8))


def reference(image, size, resize, interpolation="BICUBIC", mode="RGB"):
    from torchvision import transforms

    steps = [
        transforms.Resize(resize, transforms.InterpolationMode[interpolation], antialias=True),
        transforms.CenterCrop(size),
        transforms.PILToTensor(),
    ]
    return transforms.Compose(steps)(image.convert(mode)).numpy()


@pytest.mark.parametrize(
    "size", [(500, 375), (375, 500), (256, 256), (224, 224), (257, 301), (301, 257), (40, 31)]
)
def test_default_equals_torchvision_bit_for_bit(size):
    image = photograph(*size)
    np.testing.assert_array_equal(prepare(image, IMAGENET), reference(image, 224, 256))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(33, 47), (48, 33), (7, 9), (32, 99)])
def test_every_filter_equals_torchvision(interpolation, size):
    image = photograph(*size)
    ours = prepare(image, Preprocessing(image_size=27, resize=32, interpolation=interpolation))
    np.testing.assert_array_equal(ours, reference(image, 27, 32, interpolation.upper()))


def test_squash_equals_torchvision():
    image = photograph(50, 31)
    ours = prepare(image, Preprocessing(image_size=28, resize=32, crop="squash"))
    np.testing.assert_array_equal(ours, reference(image, 28, (32, 32)))


def test_without_resize_only_the_centre_is_cut_out():
    image = photograph(30, 27)
    ours = prepare(image, Preprocessing(image_size=20, resize=None))
    np.testing.assert_array_equal(ours, np.asarray(image)[4:24, 5:25].transpose(2, 0, 1))
    exact = photograph(20, 20)
    ours = prepare(exact, Preprocessing(image_size=20, resize=None))
    np.testing.assert_array_equal(ours, np.asarray(exact).transpose(2, 0, 1))


@pytest.mark.parametrize(("channels", "target"), [(3, "RGB"), (1, "L")])
@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "CMYK", "RGBA", "LA", "YCbCr"])
def test_every_mode_is_turned_to_the_models_channels(mode, channels, target):
    image = photograph(40, 33).convert(mode)
    ours = prepare(image, Preprocessing(image_size=24, resize=28, channels=channels))
    np.testing.assert_array_equal(ours, reference(image, 24, 28, mode=target))


def test_palette_with_transparency_drops_it(tmp_path):
    image = photograph(30, 30).convert("P")
    path = tmp_path / "palette.png"
    image.save(path, transparency=bytes(range(256)))
    ours = read_image(path, Preprocessing(image_size=30, resize=30))
    np.testing.assert_array_equal(ours, np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path):
    values = GENERATOR.integers(0, 65536, (20, 20), dtype=np.uint16)
    path = tmp_path / "deep.png"
    Image.fromarray(values).save(path)
    ours = read_image(path, Preprocessing(image_size=20, resize=20, channels=1))
    np.testing.assert_array_equal(ours[0], np.round(values / 257).astype(np.uint8))


def test_of_several_frames_the_first_counts(tmp_path):
    first, second = Image.new("RGB", (20, 20), (250, 0, 0)), Image.new("RGB", (20, 20))
    path = tmp_path / "camera.jpg"
    first.save(path, "MPO", save_all=True, append_images=[second])
    ours = read_image(path, Preprocessing(image_size=20, resize=20))
    assert ours[0].min() > 240


def test_enormous_aspect_ratio_is_refused():
    with pytest.raises(ValueError, match="its size 1x100000 is too elongated to resize"):
        prepare(Image.new("L", (1, 100_000)), IMAGENET)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"image_size": 0}, "greater than or equal to 1"),
        ({"image_size": 224, "resize": 200}, r"resize must be at least image_size \(224\)"),
        ({"channels": 4}, "1 or 3"),
        ({"interpolation": "cubic"}, "'nearest', 'bilinear'"),
        ({"size": 3}, "Extra inputs"),
    ],
)
def test_settings_are_checked(settings, problem):
    with pytest.raises(ValidationError, match=problem):
        Preprocessing(**settings)


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        IMAGENET.image_size = 3
