"""Models: attention mechanisms, backbones, checkpoints, cards."""
