"""Evaluate language models: perplexity of clean and contaminated text."""
