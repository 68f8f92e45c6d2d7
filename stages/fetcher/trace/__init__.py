"""`bin/fetcher --trace URL`: asks for one URL and prints every step and decision; stores nothing."""
