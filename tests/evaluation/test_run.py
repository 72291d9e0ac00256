import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.models.cards import Measurement


@pytest.fixture
def settings(tmp_path, batch):
    path = tmp_path / "toy.npz"
    np.savez(path, images=batch.images.numpy(), labels=batch.labels.numpy())
    return EvaluationSettings(
        data=f"npz:{path}", attacks=("fgsm",), epsilons=("0.05",), limit=None, batch_size=5
    )


def test_a_network_of_ones_own(settings, model, margins):
    steps = []
    results, samples, *_ = evaluate(
        settings, models=[model], on_progress=lambda *a: steps.append(a)
    )
    robust = {each.attack: each.robust for each in results.images.summaries}
    assert robust == {
        "clean": 14,
        "noise": robust["noise"],
        "fgsm": int((margins[2:] > 0.05).sum()),
    }
    assert len(samples) == 3 * 16
    assert steps[-1][1:] == (48, 48)
    assert [each[1] for each in steps] == sorted(each[1] for each in steps)
    assert len(results.images.models[0].weights_sha256) == 64


def test_a_model_given_twice_is_refused(settings, model):
    with pytest.raises(UsageError, match="model linear is given twice"):
        evaluate(settings, models=[model, model])


def test_the_data_hash_covers_pixels_labels_and_order_but_not_batches(settings, model):
    def digest(**changes):
        results, *_ = evaluate(settings.model_copy(update=changes), models=[model])
        return results.images.data[0].sha256

    assert digest() == digest(batch_size=16)
    assert digest() != digest(limit=8)


def test_findings_of_a_run(settings, model):
    measured = (Measurement(data="npz", n=100, correct=20),)
    model.description = model.description.model_copy(update={"measured": measured})
    changes = {"attacks": ("pgd:steps=1,step_size=1e-9,random_start=false", "spsa")}
    results, *_ = evaluate(settings.model_copy(update=changes), models=[model])
    found = {each.id: each for each in results.findings}
    assert set(found) == {
        "no-stronger-than-noise",
        "black-box-beats-white-box",
        "claimed-accuracy-differs",
    }
    assert "The card claims 20.0% clean accuracy, measured 87.5% of 16" in (
        found["claimed-accuracy-differs"].evidence
    )


def test_an_honest_run_has_no_findings(settings, model):
    assert evaluate(settings, models=[model]).results.findings == []


def test_failed_samples_are_an_error(settings, model):
    model.network.linear.register_forward_hook(lambda _, inputs, output: output * float("nan"))
    results, *_ = evaluate(settings, models=[model])
    assert {each.id for each in results.findings} == {"failed-samples"}
    assert all(each.accuracy == 0 and each.failed == 16 for each in results.images.summaries)


def test_a_claim_about_another_data_set_is_no_claim_about_this_one(settings, model):
    for name, flagged in (("fashion-mnist", False), ("npz:other.npz", False), ("npz", True)):
        measured = (Measurement(data=name, n=100, correct=20),)
        model.description = model.description.model_copy(update={"measured": measured})
        found = {each.id for each in evaluate(settings, models=[model]).results.findings}
        assert ("claimed-accuracy-differs" in found) == flagged, name
