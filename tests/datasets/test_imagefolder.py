import numpy as np
import pytest
from PIL import Image

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageFolder, Preprocessing, load_data

SMALL = Preprocessing(image_size=8, resize=10)


def save(path, colour=(200, 10, 30), size=(12, 9)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path, {".JPEG": "JPEG"}.get(path.suffix))
    return path


@pytest.fixture
def folder(tmp_path):
    for name in ("dog/b.png", "dog/a.JPEG", "cat/c.jpg", "cat/d.jpeg", "eel/e.webp", "eel/f.bmp"):
        save(tmp_path / name)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    save(tmp_path / "cat" / ".hidden.png")
    save(tmp_path / ".cache" / "x.png")
    save(tmp_path / "stray.png")
    save(tmp_path / "cat" / "deeper" / "x.png")
    return tmp_path


def test_classes_files_and_ids(folder):
    data = load_data(f"imagefolder:{folder}", preprocessing=SMALL, num_classes=3)
    assert list(data.class_names) == ["cat", "dog", "eel"]
    assert list(data.sample_ids) == [
        f"imagefolder/{name}"
        for name in (
            "cat/c.jpg",
            "cat/d.jpeg",
            "dog/a.JPEG",
            "dog/b.png",
            "eel/e.webp",
            "eel/f.bmp",
        )
    ]
    assert data.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.image_shape == (3, 8, 8)
    assert data.preprocessing == SMALL
    (batch,) = data.batches(range(6), 6)
    assert batch.images.shape == (6, 3, 8, 8)
    np.testing.assert_allclose(batch.images[3, :, 0, 0] * 255, [200, 10, 30], atol=1e-4)


def test_classes_and_labels_equal_torchvision(folder):
    from torchvision.datasets import ImageFolder as Reference

    (folder / "cat" / ".hidden.png").unlink()
    (folder / "cat" / "deeper" / "x.png").unlink()
    for file in (folder / ".cache").iterdir():
        file.unlink()
    (folder / ".cache").rmdir()
    reference = Reference(str(folder))
    data = ImageFolder(folder, SMALL)
    assert reference.classes == list(data.class_names)
    assert [(file.removeprefix(f"{folder}/"), label) for file, label in reference.samples] == [
        (sample_id.removeprefix("imagefolder/"), label)
        for sample_id, label in zip(data.sample_ids, data.labels.tolist(), strict=True)
    ]


def test_default_preprocessing_is_imagenets(folder):
    assert ImageFolder(folder).image_shape == (3, 224, 224)


def test_grey_models_get_one_channel(folder):
    data = ImageFolder(folder, Preprocessing(image_size=8, resize=10, channels=1))
    (batch,) = data.batches([3], 1)
    assert batch.images.shape == (1, 1, 8, 8)
    assert round(float(batch.images[0, 0, 0, 0]) * 255) == 69  # 0.299 R + 0.587 G + 0.114 B


def test_links_are_followed(tmp_path):
    save(tmp_path / "elsewhere" / "a.png")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "cat").symlink_to(tmp_path / "elsewhere")
    assert ImageFolder(tmp_path / "set", SMALL).sample_ids == ["imagefolder/cat/a.png"]


@pytest.mark.parametrize(
    "content", [b"", b"plain text", b"\x89PNG\r\n\x1a\nbroken", b"\xff\xd8\xff\xe0broken", None]
)
def test_unreadable_image_is_named(folder, content):
    file = folder / "dog" / "a.JPEG"
    file.unlink()
    if content is None:
        file.symlink_to(folder / "nothing")
    else:
        file.write_bytes(content)
    data = ImageFolder(folder, SMALL)
    with pytest.raises(UsageError, match=r"cannot read image .*dog/a.JPEG: .*; replace or remove"):
        list(data.batches(range(6), 2))


def test_truncated_image_is_named(folder):
    file = folder / "dog" / "b.png"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file)
    file.write_bytes(file.read_bytes()[:-2000])
    with pytest.raises(UsageError, match=r"cannot read image .*dog/b.png: .*truncated"):
        list(ImageFolder(folder, SMALL).batches(range(6), 6))


def test_small_image_without_resize_is_named(folder):
    data = ImageFolder(folder, Preprocessing(image_size=10, resize=None))
    with pytest.raises(UsageError, match=r"c.jpg: it is 12x9, too small for 10x10; set resize"):
        list(data.batches([0], 1))


def test_places_without_images_are_refused(tmp_path):
    give = "give the folder whose sub-folders are the classes"
    with pytest.raises(UsageError, match=f"no image of type .jpeg?, .*{give}|no image.*{give}"):
        ImageFolder(tmp_path)
    save(tmp_path / "val" / "cat" / "a.png")
    with pytest.raises(UsageError, match=give):
        ImageFolder(tmp_path)
    with pytest.raises(UsageError, match=f"none does not exist; {give}"):
        ImageFolder(tmp_path / "none")
    with pytest.raises(UsageError, match=f"a.png is not a folder; {give}"):
        ImageFolder(tmp_path / "val" / "cat" / "a.png")


def test_folders_must_match_the_models_classes(folder):
    with pytest.raises(UsageError, match=r"has 4 classes but there are 3 class .*add an empty"):
        ImageFolder(folder, SMALL, num_classes=4)
    (folder / "bee").mkdir()
    data = ImageFolder(folder, SMALL, num_classes=4)
    assert data.labels.tolist() == [1, 1, 2, 2, 3, 3]
    with pytest.raises(UsageError, match="has 1000 classes but there are 4 class folders"):
        ImageFolder(folder, SMALL, num_classes=1000)


def test_part_of_imagenet_is_labelled_by_the_whole_list(tmp_path):
    from timm.data import ImageNetInfo

    synsets = ImageNetInfo("imagenet-1k").label_names()
    for position in (999, 0, 281):
        save(tmp_path / synsets[position] / "a.JPEG")
    data = load_data(f"imagefolder:{tmp_path}", preprocessing=SMALL, num_classes=1000)
    assert data.labels.tolist() == [0, 281, 999]
    assert data.num_classes == 1000
    assert list(data.class_names) == synsets
    assert synsets[281] == "n02123045"  # the tabby cat
    # Without a model of 1,000 classes the folders are what there is.
    assert ImageFolder(tmp_path, SMALL, num_classes=3).labels.tolist() == [0, 1, 2]
    (tmp_path / "n00000001").mkdir()
    with pytest.raises(UsageError, match=r"some folders are .* some are not, got n00000001; move"):
        ImageFolder(tmp_path, SMALL, num_classes=1000)


def test_a_thousand_foreign_folders_are_labelled_by_position(tmp_path):
    for number in range(1000):
        (tmp_path / f"class-{number:03d}").mkdir()
    save(tmp_path / "class-500" / "a.png")
    assert ImageFolder(tmp_path, SMALL, num_classes=1000).labels.tolist() == [500]


def test_names_must_be_utf8(folder):
    (folder / "cat" / "bad\udcff.png").touch()
    with pytest.raises(UsageError, match=r"names must be UTF-8, got .*rename it"):
        ImageFolder(folder, SMALL)
