"""Studies of orders: trains the rank of URLs, and runs policies over known graphs without a network.

A study may use the pure functions of stages, because it judges what they decide; no program of a crawl imports it.
"""
