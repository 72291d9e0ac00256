"""The formats of a report: each shows the same numbers and escapes every text for itself."""
