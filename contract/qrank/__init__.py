"""QRank: the rank of a page that was never fetched, learned from the texts of URLs whose ranks are known.

The idea, the 20 features and their maxima are those of the crawler of the ITMO thesis; docs/ordering.md names what
differs. `features.py` counts what stands in a URL, `network.py` makes a level of it, `weights.py` reads the
file of a trained network. bin/train-qrank (study/) writes such a file.
"""
