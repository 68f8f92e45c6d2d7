"""An executable specification of the commit protocol, and the searches that try to break it.

Read `protocol.py` first (the theory), then `publishing.py` and `log.py` (the orders of operations),
`stages.py`, `supervisor.py`, `deletion.py`, `fork.py` (who does what), `books.py` (the promises).
`files.py` and `world.py` are the disk and the processes, `exploration.py` and `walks.py` the enemy,
`wrong.py` and `wrong_turns.py` what it catches, `covered.py` what it cannot. Nothing here imports
the project: where code and model differ, one of them is wrong.
"""
