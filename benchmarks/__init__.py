"""Benchmarks: how far the toolkit is from the cost of the passes that it makes."""
