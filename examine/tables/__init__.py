"""The tables of a crawl for people: views for SQL (views.py), and rows printed as a table, CSV or JSON (layout.py)."""
