"""Takes the collection away in the formats of other tools: bin/export.

An export is a folder with one part per cycle (`urls`: per block). Each part is whole or absent, so an export that was
killed continues where it was (`folder.py`). `selection.py` says which visits count, and which of them the options
choose; `kinds.py` writes each kind with a module of its own. The text of a page is read in a process of its own
(`text_reader.py`), because pages are hostile.
"""
