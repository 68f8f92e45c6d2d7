"""The fetcher."""
