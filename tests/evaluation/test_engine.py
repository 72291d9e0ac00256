import numpy as np
import pytest
import torch

from robustbench_elliptical.attacks import parse_attack
from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.evaluation.images.engine import PlannedAttack, evaluate_batch
from robustbench_elliptical.evaluation.images.records import SampleTable, Unit, worst_case

EPSILONS = (0.0, 0.02, 0.05, 0.1, 0.2)


def run(model, batch, *attacks, seed=0):
    table = SampleTable()
    planned = [PlannedAttack(parse_attack(text), epsilons) for text, epsilons in attacks]
    evaluate_batch(model, batch, planned, table, seed=seed, on_unit=lambda unit: None)
    return table


def outcomes(table, attack, epsilon, norm="linf"):
    return table.outcomes(Unit("linear", attack, norm, epsilon))


@pytest.mark.parametrize("attack", ["fgsm", "pgd"])
def test_outcomes_equal_the_closed_form_of_a_linear_model(model, batch, margins, attack):
    table = run(model, batch, (attack, EPSILONS))
    for epsilon in EPSILONS:
        expected = np.where(margins < epsilon, "fooled", "robust").astype("<U7")
        expected[:2] = "skipped"
        np.testing.assert_array_equal(outcomes(table, attack, epsilon), expected)


def test_clean_and_epsilon_zero_agree(model, batch):
    table = run(model, batch, ("pgd", (0.0,)), ("noise", (0.0,)))
    clean = outcomes(table, "clean", 0.0, norm=None)
    assert clean.tolist() == ["skipped"] * 2 + ["robust"] * 14
    np.testing.assert_array_equal(outcomes(table, "pgd", 0.0), clean)
    np.testing.assert_array_equal(outcomes(table, "noise", 0.0), clean)


def test_a_sample_fooled_at_a_small_epsilon_keeps_its_point_at_no_cost(model, batch):
    frame = run(model, batch, ("fgsm", EPSILONS)).frame()
    frame = frame[frame.attack == "fgsm"]
    for _, rows in frame.groupby("sample_id"):
        fooled = rows[rows.outcome == "fooled"]
        if len(fooled):
            assert (rows.outcome.tolist()[-len(fooled) :]) == ["fooled"] * len(fooled)
            assert fooled.distance.nunique() == 1
            assert fooled.forwards.tolist() == [1] + [0] * (len(fooled) - 1)
            assert fooled.distance.iloc[0] <= fooled.epsilon.iloc[0] + 1e-6


def test_passes_are_charged_to_the_samples_attacked(model, batch):
    frame = run(model, batch, ("fgsm", (0.05,)), ("spsa:steps=3,samples=4", (0.01,))).frame()
    fgsm = frame[frame.attack == "fgsm"]
    assert fgsm.forwards.tolist() == [0, 0] + [1] * 14
    assert fgsm.backwards.tolist() == [0, 0] + [1] * 14
    spsa = frame[frame.attack.str.startswith("spsa")]
    assert (spsa.backwards == 0).all()
    assert spsa.forwards.tolist()[:2] == [0, 0]
    clean = frame[frame.attack == "clean"]
    assert (clean.forwards == 1).all()


def test_batches_orders_and_neighbours_change_nothing(model, batch):
    model.double()
    batch = ImageBatch(batch.images.double(), batch.labels, batch.sample_ids)
    attacks = (("pgd:restarts=2,steps=4", (0.03, 0.06)), ("noise", (0.06,)))
    whole = run(model, batch, *attacks).frame()
    parts = SampleTable()
    planned = [PlannedAttack(parse_attack(text), epsilons) for text, epsilons in attacks]
    for chosen in ([7, 3, 1], [0], list(range(15, 7, -1))):
        part = ImageBatch(
            batch.images[chosen], batch.labels[chosen], tuple(batch.sample_ids[i] for i in chosen)
        )
        evaluate_batch(model, part, planned, parts, seed=0, on_unit=lambda unit: None)
    keys = ["attack", "epsilon", "sample_id"]
    merged = parts.frame().merge(whole, on=keys, suffixes=("", "_whole"))
    assert len(merged) == len(parts.frame()) == 12 * 4
    assert (merged.outcome == merged.outcome_whole).all()
    assert (merged.forwards == merged.forwards_whole).all()
    np.testing.assert_allclose(merged.distance, merged.distance_whole, atol=1e-12)


def test_modes_gradients_and_generators_are_as_before(model, batch):
    model.train()
    model.network.dropout.eval()
    model.network.linear.bias.requires_grad_(requires_grad=False)
    state = torch.get_rng_state()
    run(model, batch, ("pgd", (0.05,)))
    assert model.training
    assert model.network.linear.training
    assert not model.network.dropout.training
    assert model.network.linear.weight.requires_grad
    assert not model.network.linear.bias.requires_grad
    assert model.network.linear.weight.grad is None
    assert torch.equal(state, torch.get_rng_state())


def test_modes_are_restored_after_an_exception(model, batch):
    model.train()
    model.network.linear.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(model, batch)
    assert model.training
    assert model.network.linear.weight.requires_grad


def test_logits_that_are_not_finite_are_failures(model, batch):
    def spoil(_, inputs, output):
        return torch.where(inputs[0][:, :1] > 0.55, torch.nan, output)

    model.network.linear.register_forward_hook(spoil)
    table = run(model, batch, ("pgd", (0.05,)))
    spoiled = (batch.images[:, 0, 0, 0] > 0.55).numpy()
    clean = outcomes(table, "clean", 0.0, norm=None)
    np.testing.assert_array_equal(clean == "failed", spoiled)
    frame = table.frame()
    failed = frame[frame.outcome == "failed"]
    assert (failed.reason == "the logits are not finite").all()
    assert failed.prediction.isna().all()
    assert (outcomes(table, "pgd", 0.05)[spoiled] == "failed").all()


def test_the_worst_case_is_fooled_by_any_and_robust_under_all():
    table = SampleTable()
    rows = {
        "a": ["robust", "fooled", "robust", "skipped", "failed", "failed"],
        "b": ["robust", "robust", "fooled", "skipped", "robust", "fooled", "fooled"],
    }
    from robustbench_elliptical.evaluation.images.records import Block

    for attack, values in rows.items():
        n = len(values)
        zeros = np.zeros(n, dtype=np.int64)
        block = Block(
            [str(i) for i in range(n)], zeros, np.array(values), zeros, zeros * 0.0, zeros, zeros,
            [""] * n,
        )  # fmt: skip
        table.add(Unit("m", attack, "linf", 0.1), block, 0.0)
    combined = worst_case(table, table.units())
    assert combined.tolist() == ["robust", "fooled", "fooled", "skipped", "failed", "fooled"]


def test_targeted_attacks_never_aim_at_the_label(model, batch, margins):
    table = run(model, batch, ("pgd:targeted=true", (0.05,)))
    expected = np.where(margins < 0.05, "fooled", "robust").astype("<U7")
    expected[:2] = "skipped"
    np.testing.assert_array_equal(outcomes(table, "pgd(targeted=true)", 0.05), expected)
