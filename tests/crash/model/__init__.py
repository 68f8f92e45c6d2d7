"""An executable specification of the commit protocol: see `protocol.py` for the right one, `wrong.py` for the others."""
