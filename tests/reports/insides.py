"""Insides and pictures as an evaluation would write them, made from a seed."""

import numpy as np

from robustbench_elliptical.results import (
    Estimate,
    InternalsRecord,
    MetricRecord,
    PictureRecord,
)

CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
           "Bag", "Ankle boot"]  # fmt: skip


def estimate(rng, mean, width=0.02):
    half = width * rng.uniform(0.5, 1.5)
    return Estimate(mean=float(mean), low=float(mean - half), high=float(mean + half))


def internals(model, unit, *, blocks=4, heads=4, components=16, n=24, maps=True, calm=1.0, seed=0):
    """The inside of one model under one attack: what is elliptical has a metric."""
    attack, norm, epsilon = unit
    rng = np.random.default_rng([seed, round(1e6 * epsilon), len(model)])
    hurt = 255 * epsilon / 8 * (1 + 0.1 * (sum(model.encode()) % 7))
    depth = np.arange(blocks + 1)
    similarity = (
        0.2
        + (0.4 + 0.05 * (sum(model.encode()) % 5)) * (depth / blocks) ** 1.5
        + 0.06 * hurt * depth / blocks
    )
    iou = 1 - calm * hurt * (0.1 + 0.4 * depth[1:] / blocks)
    metric = []
    for block in range(1, blocks) if "elliptical" in model else ():
        spectra = np.sort(rng.beta(2, 2 + block, (heads, components)))
        spectra = rng.permuted(spectra / spectra.max(axis=1, keepdims=True), axis=1)
        change = [
            estimate(rng, 0.01 * hurt * (block + head / heads), 0.002 * hurt)
            for head in range(heads)
        ]
        metric.append(
            MetricRecord(block=block, mean=spectra.tolist(), change=change if norm else [])
        )
    return InternalsRecord(
        model=model,
        attack=attack,
        norm=norm,
        epsilon=epsilon,
        samples=n,
        token_similarity=[estimate(rng, each) for each in similarity],
        attention_iou=[estimate(rng, each, 0.02 * calm) for each in iou] if norm and maps else [],
        metric=metric,
    )


def picture(model, unit, place, *, shape=(1, 28, 28), maps=True, side=7, classes=10):
    """A record and its arrays: a blot, and the same with signs of epsilon added."""
    attack, norm, epsilon = unit
    rng = np.random.default_rng(place)
    down, right = np.mgrid[-1 : 1 : shape[1] * 1j, -1 : 1 : shape[2] * 1j]
    blot = np.exp(-3 * (np.abs(down * (1 + place % 3)) ** 3 + np.abs(right) ** 3))
    texture = 0.8 + 0.2 * np.sin(9 * right * (1 + place % 2))
    clean = np.stack([blot * texture * (1 - 0.3 * channel) for channel in range(shape[0])])
    attacked = np.clip(clean + epsilon * rng.choice([-1.0, 1.0], shape), 0, 1)
    record = PictureRecord(
        key=f"{model[:8].encode().hex()}-{attack.encode().hex()}-{epsilon:.6f}-{place}",
        model=model,
        attack=attack,
        norm=norm,
        epsilon=epsilon,
        sample_id=f"fashion-mnist/{place:05}",
        label=place % classes,
        clean_prediction=place % classes,
        prediction=(place * 3 + 1) % classes,
    )
    arrays = {f"{record.key}/clean": clean, f"{record.key}/attacked": attacked}
    if maps:
        for part, shift in (("clean", 0.0), ("attacked", 0.6)):
            grid = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
            attention = np.exp(-4 * ((grid[0] - shift) ** 2 + (grid[1] + shift) ** 2))
            arrays[f"{record.key}/{part}-attention"] = attention / attention.sum()
    return record, {name: array.astype(np.float16) for name, array in arrays.items()}


def with_inside(evaluation, *, classes=CLOTHES, shown=5, pictures=None, only=None, **options):
    """Add insides and pictures of every model under everything but noise."""
    task = evaluation.results.images
    units = [("clean", None, 0.0)]
    units += [
        (attack.label, attack.norm, epsilon)
        for attack in task.attacks
        if attack.knowledge != "none"
        for epsilon in attack.epsilons
    ]
    models = [model.name for model in task.models if only is None or model.name in only]
    records = [internals(model, unit, **options) for unit in units for model in models]
    made = [
        picture(model, unit, place, **(pictures or {}))
        for unit in units[1:]
        for model in models
        for place in range(shown)
    ]
    data = [each.model_copy(update={"class_names": classes}) for each in task.data]
    changed = task.model_copy(
        update={"internals": records, "pictures": [each for each, _ in made], "data": data}
    )
    others = [each for each in evaluation.results.tasks if each is not task]
    results = evaluation.results.model_copy(update={"tasks": [changed, *others]})
    arrays = {name: array for _, arrays in made for name, array in arrays.items()}
    return evaluation._replace(results=results, pictures=arrays)
