"""bin/dashboard: a crawl in a browser, while it runs."""
