"""The link graph of a crawl on disk: builds it, writes it in other formats, measures it, ranks it.

How a link becomes an edge. A cycle's table Ligacoes has pairs of keys. `tables.py` says which cycles count.
`url_runs.py` sorts the URLs of each cycle by their text, once, and merges these runs: the position of a URL in the
merged order is its number. `page_keys.py` sorts keys and numbers by key. `links.py` turns keys into numbers by merging
sorted arrays: first the page of each link, then, sorted anew, its target. `csr.py` has the result: for each page the
numbers of its targets. `levels.py` folds pages into servers and domains. `build.py` leads through all that, and
`folder.py` publishes it.
"""
