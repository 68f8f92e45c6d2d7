"""The extractor."""
