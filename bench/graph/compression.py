"""Bits per link of a real graph in WebGraph's compressed form, written as bin/graph export does."""

import time
from pathlib import Path

import numpy as np

from contract.errors import BadInput
from graph import bvgraph
from graph.csr import Csr
from storage.compiled import load_all
from study.graph_files import load_arrays


def measure_compression(path: Path, folder: Path) -> dict[str, float]:
    """Of the lists alone, as WebGraph counts them. REQUIRES: an empty folder."""
    links = Csr(*load_arrays(path))
    starts = np.zeros(links.edges + 1, bool)
    starts[links.offsets] = True
    if not (starts[1:-1] | (links.targets[1:] > links.targets[:-1])).all():
        raise BadInput(f"{path}: expected targets that rise from link to link of a page")
    load_all()
    begun = time.perf_counter()
    bits = bvgraph.compress(folder, links)
    return {
        "bits_per_link_compressed": round(bits / max(links.edges, 1), 3),
        "compressed_links_per_s": round(links.edges / (time.perf_counter() - begun)),
    }
