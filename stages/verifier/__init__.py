"""The verifier."""

import os

# numpy asks for huge pages for its arrays, and where memory is fragmented the kernel stops to make some: 10 ms for each 2 MB
# were seen, a quarter of a turn. numpy reads this when it is imported.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
