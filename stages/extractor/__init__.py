"""The extractor: reads the pages of a cycle and writes tables of what they say."""
