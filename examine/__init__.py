"""Reads a crawl folder and tells what is in it; writes nothing and needs no lock."""
