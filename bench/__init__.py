"""Benchmarks: one script a claim in docs/performance.md."""
