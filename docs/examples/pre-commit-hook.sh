#!/bin/sh
# .git/hooks/pre-commit: holds a checkpoint against the baseline if the commit changes it.
# Inconclusive (3) is let through here; the pipeline has more samples.
CHECKPOINT="${CHECKPOINT:-checkpoints/new.safetensors}"
MODEL="${MODEL:-deit-micro-softmax,checkpoint=$CHECKPOINT}"
BASELINE="${BASELINE:-robustness/baseline.json.gz}"
RULES="${RULES:-robustness/gate.toml}"

git diff --cached --quiet -- "$CHECKPOINT" && exit 0
elliptical-robust check "$MODEL" --baseline "$BASELINE" --rules "$RULES" --quiet
status=$?
[ "$status" -eq 3 ] && exit 0
exit "$status"
