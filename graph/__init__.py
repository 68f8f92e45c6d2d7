"""The link graph of a crawl: built from the tables of its cycles, on disk, within a bound of memory.

`build.py` leads through the steps, `sources.py` says from what. `new_urls.py` finds the URLs that no graph has yet and
sorts them by their text; `numbering.py` merges them with those of the earlier graph (`base.py`): the index of a URL
among all is its number. `page_keys.py` turns keys into numbers, `links.py` turns links into edges. `edges.py` merges
edges, `csr.py` writes them, `levels.py` folds them into those of servers and domains. `folder.py` opens what is there.
`formats.py` and `padova.py` write it for other tools; `statistics.py`, `pagerank.py` and `harmonic.py` measure it.
"""
