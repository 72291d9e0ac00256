"""Train the small models that ship with the package: seeded, resumable, one recipe for all."""
