"""bin/report: a crawl as one HTML file with pictures and tables."""
