"""The four programs of the ring; none imports another."""
