"""Pages made to cost: none, however hostile, does more than be a page, and what stood first in it is found."""

import random
import time

import pytest

from contract.config import Config
from stages.extractor.documents import nesting
from stages.extractor.documents.nesting import cut_tangled, find_tags
from tests.extractor_lab import read_answer
from tests.unit.test_html import links

SECONDS_MAX = 6.0  # about one is expected; a page that is not cut takes minutes


def cut(html: bytes) -> bytes:
    page, trouble = cut_tangled(html, find_tags(html))
    assert bool(trouble) == (len(page) < len(html))
    return page


HOSTILE = {
    "random": random.Random(1).randbytes(300_000),
    "long attribute": b"<a href='" + b"x" * 1_000_000 + b"'><a href=y>",
    "deep": b"<div>" * 100_000 + b"<a href=x>",
    "deep lists": b"<ul><li>" * 100_000,
    "nul": b"\0<a href=\0x\0>\0" * 1000,
    "many attributes": b"<a href=x><b " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">",
    "attributes with marks": b"<a href=x><b " + b" ".join(b"a%d='>'" % number for number in range(200_000)) + b">",
    "open formatting": b"<a href=x><p>" + b"".join(b"<b id=%d>" % number for number in range(4_000)) + b"<p>x" * 4_000,
    "open formatting, long": b"<a href=x><p>"
    + b"".join(b"<b id=%d>" % number for number in range(8))
    + b"<p>x" * 300_000,
    "many options": b"<a href=x><select>" + b"<option>x" * 200_000,
    "unknown end tags": b"<a href=x>" + b"<div></x>" * 100_000,
    "end tags out of reach": b"<a href=x>" + b"<div><table></div>" * 100_000,
    "cells without a table": b"<a href=x>" + b"<div><td>" * 100_000,
    "only brackets": b"<" * 1_000_000,
    "tags that never end": b"<b " * 300_000,
    "empty": b"",
    "deep, a million": b"<a href=x>" + b"<div>" * 1_000_000,
    "deep, of names that nobody knows": b"<a href=x>" + b"<x-y>" * 1_000_000,
    "deep drawings": b"<a href=x>" + b"<svg><g>" * 500_000,
    "deep templates": b"<a href=x>" + b"<template>" * 100_000,
    "templates side by side": b"<a href=x>" + b"<template><a href=y></template>" * 30_000,
    "a million attributes": b"<a href=x><b " + b" ".join(b"a%d=1" % number for number in range(1_000_000)) + b">",
    "a million glued attributes": b"<a href=x><b " + b"".join(b"a%d=''" % number for number in range(1_000_000)) + b">",
    "open formatting, all kinds": b"<a href=x>" + b"<b><i><u><s><em><tt><big><code><font><small><strong><p>" * 20_000,
    "open formatting, told apart": b"<a href=x>"
    + b"".join(b"<p><font id=%d><i id=%d>" % (number, number) for number in range(100_000)),
    "open links": b"<a href=x>" + b"".join(b"<div><a href=%d>" % number for number in range(20_000)),
    "blanks in a refresh": b"<a href=x><meta http-equiv=refresh content='0" + b" " * 1_000_000 + b"'>",
    "digits in a refresh": b"<a href=x><meta http-equiv=refresh content='" + b"0." * 1_000_000 + b"'>",
    "commas in a srcset": b"<a href=x><img srcset='" + b"," * 1_000_000 + b"'>",
    "brackets in a srcset": b"<a href=x><img srcset='y " + b"(" * 1_000_000 + b"'>",
    "many candidates": b"<a href=x><img srcset='" + b"y 1x," * 300_000 + b"'>",
    "many relations": b"<a href=x>" + b"<link rel='" + b"next " * 300_000 + b"' href=y>",
    "words of robots": b"<a href=x><meta name=robots content='" + b" ," * 500_000 + b"'>",
    "titles": b"<a href=x>" + b"<svg><title>" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(6)
def test_hostile_pages(name):
    began = time.process_time()  # what others do on the machine is not counted
    found = links(HOSTILE[name])
    assert time.process_time() - began < SECONDS_MAX
    if b"href=x>" in HOSTILE[name][:20]:
        assert ("a", "x") in found


@pytest.mark.parametrize(
    "page",
    [
        b"".join(b"<a href=%d><object>" % number for number in range(3_000)) + b"w " * 3_000_000,
        b"".join(b"<a href=%d><object>" % number for number in range(100_000)),
        b"<a href=x>w</a>" * 300_000,
    ],
    ids=["much text", "deep", "alike"],
)
@pytest.mark.sampled(1)
def test_links_that_stand_in_each_other(page):
    began = time.process_time()
    assert links(page, anchor_text=True, lazy_attributes=True, inline_scripts=True, inline_styles=True, text=True)
    assert time.process_time() - began < SECONDS_MAX


@pytest.mark.parametrize(
    "page",
    [
        b"<svg>" + b"<style>url(x)" * 100_000,
        b"<p style='background:url(x)'>" * 100_000,
        b"<style>" + b"url( " * 1_000_000,
        b"<p style='" + b"url((" * 1_000_000,
    ],
    ids=["nested", "many", "open", "one"],
)
@pytest.mark.sampled(2)
def test_styles_without_end(page):
    began = time.process_time()
    links(page, inline_styles=True)
    assert time.process_time() - began < SECONDS_MAX


LINES = {
    "text": b"<a href=x>",
    "attribute": b"<a href=x><a href='",
    "tags": b"<a href=x>" + b"<p>" * 10_000,
    "comment": b"<a href=x><!--",
    "script": b"<a href=x><script>'",
    "title": b"<a href=x><title>",
}
LINE_BYTES = 100_000_000


@pytest.mark.parametrize("name", LINES)
@pytest.mark.sampled(1)
def test_a_line_of_100_mb(name):
    piece = b"<p>y" if name == "tags" else b"y"
    body = LINES[name] + piece * (LINE_BYTES // len(piece))
    began = time.process_time()
    answer = read_answer(body)
    assert time.process_time() - began < SECONDS_MAX and len(answer.content) == Config().extractor.page_max_bytes
    assert (
        answer.reader == "html"
        and list(answer.document.links) == [(0, "x", False)]
        and len(answer.document.title) <= 300
    )


ORDINARY = {
    "large table": b"<table>"
    + b"<tr><td><font color=red><b>x</b></font><td><p>y<td><a href=z>z</a></tr>" * 20_000
    + b"</table>",
    "unclosed cells": b"<table>" + b"<tr><td><font color=red><b>x<td><p>y" * 20_000,
    "unclosed items": b"<ul>" + b"<li><font size=1><b>x" * 40_000,
    "unclosed paragraphs": b"<p>x<br>" * 100_000,
    "drawing": b"<svg>" + b"<path d='M0 0'/>" * 50_000 + b"</svg>" + b"<div><p>x<b>y</b></div>" * 10_000,
    "definitions": b"<dl>" + b"<dt>x<dd>y" * 50_000,
    "one long script": b"<script>" + b"var a = '/x'; " * 50_000 + b"</script><a href=x>",
    "long data": b"<img src='data:," + b"a b " * 50_000 + b"'><a href=x>",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_large_pages_are_not_cut(name):
    assert cut(ORDINARY[name]) == ORDINARY[name]


def test_a_tangled_page_is_cut_at_a_tag(monkeypatch):
    monkeypatch.setattr(nesting, "TAGS_UNCHECKED", 10)
    monkeypatch.setattr(nesting, "TAGS_SHALLOW", 10)
    monkeypatch.setattr(nesting, "STEPS_MAX", 1_000)
    monkeypatch.setattr(nesting, "ELEMENTS_MAX", 1_000)
    assert cut(b"<DIV>" * 100) == b"<DIV>" * 45
    bold = b"".join(b"<b id=%d>" % number for number in range(100))
    assert len(bold) > len(cut(bold)) and bold[len(cut(bold))] == ord("<")
    assert cut(b"<b></b>" * 500 + b"<b>" * 3) == b"<b></b>" * 500 + b"<b>" * 3
