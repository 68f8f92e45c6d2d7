"""Reads a crawl folder and reports what is in it; writes nothing and needs no lock."""
