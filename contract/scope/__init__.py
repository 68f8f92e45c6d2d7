"""Scope: which URLs a crawl wants. Extractor, fetcher and bin/why judge URLs by this one package.

  rules.py         the rules in their order, their keys in [scope], and the judge, class Scope
  traps.py         signs in a URL's text that a server makes such URLs without end; pure
  requisites.py    what a page needs to be shown; fewer rules judge it
  link_sources.py  what is crawled for its links and is no part of the collection
  verdict.py       judges one URL by the plan of a cycle; bin/why prints the answer

The extractor judges each link as Scope.judge_link() does, in parts that it remembers. The fetcher judges each listed
URL by Scope.judge_listed(), because the configuration may have changed since the URL was found.

To add a rule, edit two files of code:
1. contract/config.py: the key in class Scope, with its default and its bounds.
2. contract/scope/rules.py: the name of the rule, which is that of the key, in RULES, in the order of judgement; its
   check in the method of its group: _judge_server(), _judge_location(), _judge_words() or _judge_traps(). Every rule is
   a trap unless OUT_OF_SCOPE names it. UrlsRejeitadas, the books and bin/why need no change: they loop over RULES.
Tests name what is still missing: the key with its comment in pipeline.toml, and its row in the tables of docs/scope.md.
"""
