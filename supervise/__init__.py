"""Runs the stages as commands, in a loop that any crash may interrupt."""
