"""Performance and quality gates: measure, store, compare."""
