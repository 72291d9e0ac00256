"""Results as an evaluation would write them, made from a few numbers and a seed."""

import hashlib

import numpy as np
import pandas as pd

from robustbench_elliptical.results import (
    DOCUMENT_COLUMNS,
    SAMPLE_COLUMNS,
    AccuracySummary,
    AttackRecord,
    DataRecord,
    Evaluation,
    Finding,
    ImageClassificationResults,
    LanguageModellingResults,
    ModelRecord,
    PerplexityProtocol,
    PerplexitySummary,
    Results,
    RunRecord,
    TextAttackRecord,
    TextRecord,
    wilson_interval,
    write_results,
)
from robustbench_elliptical.results.perplexity import perplexity, perplexity_interval

EPSILONS = (2 / 255, 4 / 255, 8 / 255)
RATES = (0.01, 0.025, 0.05)


def run_record(**changes):
    values = {
        "created": "2026-01-01T00:00:00+00:00",
        "command": "elliptical-robust eval --model a --model b",
        "seed": 0,
        "limit": None,
        "batch_size": 100,
        "device": "cpu",
        "threads": 1,
        "seconds": 12.5,
        "versions": {"robustbench-elliptical": "0.1.0", "torch": "2.9.0"},
        "git_commit": "0123456789abcdef",
    }
    return RunRecord(**{**values, **changes})


def model_record(name, *, seed=None, family=None, task="image-classification", **description):
    facts = {
        "name": name,
        "task": task,
        "attention": "elliptical" if "elliptical" in name else "softmax",
        "attention_settings": {},
        "parameters": 456394,
        **description,
    }
    return ModelRecord(
        name=name,
        family=family or name,
        seed=seed,
        weights_sha256=hashlib.sha256(f"{name}{seed}".encode()).hexdigest(),
        description=facts,
    )


def image_evaluation(
    models,
    *,
    strengths,
    attacks=("fgsm", "pgd"),
    epsilons=EPSILONS,
    n=200,
    data="fashion-mnist",
    complete=True,
    findings=(),
    seed=0,
    reached=None,
    **run,
):
    """Images of different difficulty; a model of strength s resists where s beats it."""
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(0, 1, n)
    ids = [f"{data}/{place:05}" for place in range(n)]
    rows, summaries = [], []
    units = [("clean", None, 0.0), *(("noise", "linf", each) for each in epsilons)]
    units += [(attack, "linf", each) for attack in attacks for each in epsilons]
    counts = {model.name: (reached or {}).get(model.name, n) for model in models}
    for model, strength in zip(models, strengths, strict=True):
        shape = counts[model.name]
        noise = rng.normal(0, 0.08, n)
        clean = difficulty + noise < 0.9
        worst = {}
        for place, (attack, norm, epsilon) in enumerate(units):
            hurt = 0 if attack in ("clean", "noise") else epsilon * 255 / 8 * (1 + 0.05 * place)
            robust = clean & (difficulty + noise + hurt * (1 - strength) < 0.9)
            outcomes = np.where(robust, "robust", np.where(clean, "fooled", "skipped"))[:shape]
            worst.setdefault((norm, epsilon), []) if norm is None or attack == "noise" else (
                worst.setdefault((norm, epsilon), []).append(robust[:shape])
            )
            rows.append(_image_rows(model.name, attack, epsilon, ids[:shape], outcomes))
            passes = {"clean": (1, 0), "noise": (0, 0), "fgsm": (1, 1)}.get(attack, (21, 20))
            summaries.append(_accuracy(model.name, attack, norm, epsilon, outcomes, passes))
        for (norm, epsilon), parts in worst.items():
            if len(parts) > 1:
                robust = np.logical_and.reduce(parts)
                outcomes = np.where(robust, "robust", np.where(clean[:shape], "fooled", "skipped"))
                summaries.append(
                    _accuracy(model.name, "worst-case", norm, epsilon, outcomes, (22, 21))
                )
    task = ImageClassificationResults(
        models=models,
        data=[_data(model.name, data, ids[: counts[model.name]]) for model in models],
        attacks=[_attack(each, epsilons) for each in ("noise", *attacks)],
        summaries=summaries,
        findings=list(findings),
    )
    results = Results(complete=complete, run=run_record(**run), tasks=[task])
    frame = pd.concat(rows, ignore_index=True)
    return Evaluation(results, frame, pd.DataFrame(columns=list(DOCUMENT_COLUMNS)))


def _image_rows(model, attack, epsilon, ids, outcomes):
    frame = pd.DataFrame({"sample_id": ids, "outcome": outcomes})
    frame = frame.assign(model=model, attack=attack, epsilon=epsilon, label=1, prediction=1)
    frame = frame.assign(distance=epsilon, forwards=1, backwards=0, reason="")
    return frame[list(SAMPLE_COLUMNS)]


def _accuracy(model, attack, norm, epsilon, outcomes, passes):
    n, robust = len(outcomes), int((outcomes == "robust").sum())
    low, high = wilson_interval(robust, n)
    return AccuracySummary(
        model=model,
        attack=attack,
        norm=norm,
        epsilon=epsilon,
        samples=n,
        robust=robust,
        fooled=int((outcomes == "fooled").sum()),
        skipped=int((outcomes == "skipped").sum()),
        failed=int((outcomes == "failed").sum()),
        accuracy=robust / n,
        low=low,
        high=high,
        forwards=passes[0] * n,
        backwards=passes[1] * n,
        seconds=0.01 * n * sum(passes),
    )


def _data(model, name, ids):
    digest = hashlib.sha256(repr(ids).encode()).hexdigest()
    return DataRecord(name=name, model=model, samples=len(ids), sha256=digest, class_names=None)


def _attack(name, epsilons):
    knowledge = {"noise": "none", "spsa": "black-box"}.get(name, "white-box")
    return AttackRecord(
        label=name,
        name=name.split("(")[0],
        knowledge=knowledge,
        norm="linf",
        settings={"steps": 20},
        epsilons=list(epsilons),
    )


def text_evaluation(
    models,
    *,
    means,
    units=None,
    rates=RATES,
    documents=12,
    data="sotu",
    split="test",
    attack="word-swap",
    window=256,
    seed=0,
    complete=True,
    findings=(),
    **run,
):
    """Documents of different difficulty; `means` are the models' losses per word."""
    rng = np.random.default_rng(seed)
    words = rng.integers(300, 900, documents)
    hard = rng.normal(0, 0.3, documents)
    rows, summaries, protocols = [], [], []
    names = [f"{data}/{place:03}" for place in range(documents)]
    for place, (model, mean) in enumerate(zip(models, means, strict=True)):
        per_word = (units or ["word"] * len(models))[place]
        targets = words if per_word == "word" else (words * 1.3).astype(int)
        own = rng.normal(0, 0.02, documents)
        protocols.append(
            PerplexityProtocol(
                model=model.name,
                window=window,
                stride=window // 4,
                context="document",
                prefix="<eos>",
                unit=per_word,
            )
        )
        for label, rate in [("clean", 0.0), *((attack, each) for each in rates)]:
            loss = words * (mean + hard + own + 12 * rate)
            swapped = (words * rate).astype(int)
            clean_targets = targets - swapped
            clean_loss = clean_targets * (mean + hard + own + 2 * rate) * words / targets
            rows.append(
                pd.DataFrame(
                    {
                        "model": model.name,
                        "attack": label,
                        "rate": rate,
                        "document": names,
                        "outcome": "scored",
                        "targets": targets,
                        "loss": loss,
                        "clean_targets": clean_targets,
                        "clean_target_loss": clean_loss,
                        "words": words,
                        "bytes": words * 6,
                        "eligible": words,
                        "swapped": swapped,
                        "forwards": 20,
                        "backwards": 0,
                        "reason": "",
                    }
                )
            )
            summaries.append(_perplexity(rows[-1], model.name, label, rate))
    task = LanguageModellingResults(
        models=models,
        data=[
            TextRecord(
                name=data,
                split=split,
                model=model.name,
                documents=documents,
                words=int(words.sum()),
                unknown_words=3,
                sha256=hashlib.sha256(repr((names, words)).encode()).hexdigest(),
            )
            for model in models
        ],
        protocols=protocols,
        attacks=[
            TextAttackRecord(
                label=attack, name=attack, knowledge="none", settings={}, rates=list(rates)
            )
        ],
        summaries=summaries,
        comparisons=[],
        findings=list(findings),
    )
    results = Results(complete=complete, run=run_record(**run), tasks=[task])
    frame = pd.concat(rows, ignore_index=True)[list(DOCUMENT_COLUMNS)]
    return Evaluation(results, pd.DataFrame(columns=list(SAMPLE_COLUMNS)), frame)


def _perplexity(rows, model, attack, rate):
    sums = {name: float(rows[name].sum()) for name in ("loss", "clean_target_loss")}
    counts = {
        name: int(rows[name].sum())
        for name in ("targets", "clean_targets", "words", "bytes", "forwards", "backwards")
    }
    both = rows["loss"].to_numpy(float), rows["targets"].to_numpy(float)
    clean = rows["clean_target_loss"].to_numpy(float), rows["clean_targets"].to_numpy(float)
    low, high = perplexity_interval(*both, resamples=200)
    clean_low, clean_high = perplexity_interval(*clean, resamples=200)
    return PerplexitySummary(
        model=model,
        attack=attack,
        rate=rate,
        realised_rate=float(rows["swapped"].sum() / rows["eligible"].sum()),
        documents=len(rows),
        failed=0,
        perplexity=perplexity(sums["loss"], counts["targets"]),
        low=low,
        high=high,
        clean_target_perplexity=perplexity(sums["clean_target_loss"], counts["clean_targets"]),
        clean_target_low=clean_low,
        clean_target_high=clean_high,
        word_perplexity=perplexity(sums["loss"], counts["words"]),
        byte_perplexity=perplexity(sums["loss"], counts["bytes"]),
        seconds=3.0,
        **counts,
    )


def finding(model, **changes):
    values = {
        "id": "no-stronger-than-noise",
        "severity": "warning",
        "model": model,
        "attack": "fgsm",
        "epsilon": 8 / 255,
        "evidence": "150 samples resist it, 140 resist random noise of the same size.",
        "remedy": "Raise its steps or samples, or look for masked gradients.",
    }
    return Finding(**{**values, **changes})


def joined(images, text):
    """One run with both tasks."""
    results = images.results.model_copy(update={"tasks": images.results.tasks + text.results.tasks})
    return Evaluation(results, images.samples, text.documents, images.pictures)


def write(folder, evaluation):
    write_results(folder, evaluation, lambda _: "table\n")
    return folder
