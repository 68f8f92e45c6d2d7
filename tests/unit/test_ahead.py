"""storage/ahead.py: the same items and calls in their order, errors in their place, and no thread left over."""

import threading

import pytest

from storage.ahead import Behind, ahead


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


def test_calls_run_in_their_order_in_another_thread():
    seen, before = [], threading.active_count()
    with Behind() as behind:
        for item in range(5):
            behind(lambda item=item: seen.append((item, threading.current_thread())))
    assert [item for item, _ in seen] == list(range(5)) and threading.active_count() == before
    assert threading.current_thread() not in {thread for _, thread in seen}


@pytest.mark.parametrize("calls", [1, 2])
def test_an_error_of_a_call_comes_at_the_next_one_or_at_the_end(calls):
    with pytest.raises(ZeroDivisionError), Behind() as behind:
        for _ in range(calls):
            behind(lambda: 1 // 0)
