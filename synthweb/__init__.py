"""A web made from a seed and served on loopback: demo, tests and benchmarks crawl it and ask it for the truth."""

from synthweb.answer import Answer
from synthweb.changing_web import ChangingWeb, set_clock
from synthweb.listener import serve
from synthweb.rules import Rules
from synthweb.walk import Walk
from synthweb.web import Web

__all__ = ["Answer", "ChangingWeb", "Rules", "Walk", "Web", "serve", "set_clock"]
