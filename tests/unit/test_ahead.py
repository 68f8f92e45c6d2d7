"""storage/ahead.py: the same items, errors in their place, and no thread left behind."""

import threading

import pytest

from storage.ahead import ahead


def test_items_come_in_their_order_from_another_thread():
    seen = []

    def make():
        for item in (0, None, "", 3):
            seen.append(threading.current_thread())
            yield item

    assert list(ahead(make())) == [0, None, "", 3]
    assert threading.current_thread() not in seen


def test_an_error_comes_after_the_items_before_it():
    def make():
        yield 1
        raise ValueError("no more")

    items = ahead(make())
    assert next(items) == 1
    with pytest.raises(ValueError, match="no more"):
        next(items)


def test_who_stops_early_leaves_no_thread():
    before = threading.active_count()
    items = ahead(range(1_000_000))
    assert next(items) == 0
    items.close()
    assert threading.active_count() == before
