"""What every other package builds on: errors, registries, shipped files, keyed randomness.

Knows nothing about models, attacks or data.
"""
