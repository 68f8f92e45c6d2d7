"""Files, arrays and tables that survive a crash; knows nothing of URLs, blocks or generations."""
