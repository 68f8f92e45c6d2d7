"""Encodings with more than one byte per character, as the Encoding standard and browsers have them."""
