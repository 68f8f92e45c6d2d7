"""Benchmarks: one script per claim in docs/performance.md."""
