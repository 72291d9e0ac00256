import pytest

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.data import DATA, DataSource, EmbeddedFashionMnist, load_data


def test_unknown_name_gets_suggestions_and_the_ways_to_write_it():
    with pytest.raises(UnknownNameError, match=r"did you mean 'fashion-mnist'\?.*imagefolder:DIR"):
        load_data("fashion-mnst")
    with pytest.raises(UnknownNameError, match=r"unknown data set '/some/folder'.*npz:FILE"):
        load_data("/some/folder")


@pytest.mark.parametrize(
    ("spec", "form"),
    [
        ("npz", "npz:FILE"),
        ("npz:", "npz:FILE"),
        ("imagefolder", "imagefolder:DIR"),
        ("imagefolder: ", "imagefolder:DIR"),
        ("fashion-mnist:", "fashion-mnist or fashion-mnist:DIR"),
    ],
)
def test_forms_that_lack_a_place_are_refused(spec, form):
    with pytest.raises(UsageError, match=f"data must be written {form}, got {spec!r}"):
        load_data(spec)


def test_number_of_classes_must_be_the_models():
    with pytest.raises(UsageError, match="data fashion-mnist has 10 classes but the model has 7"):
        load_data("fashion-mnist", num_classes=7)


def test_split_is_one_of_two():
    with pytest.raises(UsageError, match="split must be test or train, got 'valid'"):
        load_data("fashion-mnist", split="valid")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("a\0b", "null character"),
        ("~no-such-user-here/x", "no home folder"),
        ("x" * 5000, "File name too long"),
        ("/dev/null/x", "does not exist|Not a directory"),
    ],
)
@pytest.mark.parametrize("name", ["npz", "imagefolder", "fashion-mnist"])
def test_impossible_paths_are_refused(name, place, problem):
    with pytest.raises(UsageError, match=problem):
        load_data(f"{name}:{place}")


def test_forbidden_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "set.npz"
    path.touch()

    def forbid(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("zipfile.ZipFile", forbid)
    with pytest.raises(UsageError, match=r"cannot read .*set.npz: Permission denied"):
        load_data(f"npz:{path}")


def test_a_new_source_is_a_registration(monkeypatch):
    monkeypatch.setattr(DATA, "_entries", dict(DATA._entries))
    requests = []

    def load(request):
        requests.append(request)
        return EmbeddedFashionMnist()

    DATA.add("mine", DataSource(("mine:PLACE",), load))
    load_data("mine:/here:there", split="train", num_classes=10)
    assert str(requests[0].place) == "/here:there"
    assert requests[0].split == "train"
    with pytest.raises(UsageError, match="data must be written mine:PLACE, got 'mine'"):
        load_data("mine")
