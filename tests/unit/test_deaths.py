"""When a page may be charged for a dead fetcher: once those of other blocks show that this machine lets them live."""

from supervise.deaths import Deaths


def test_a_fetcher_that_collects_pages_after_the_death_vouches_for_the_machine():
    deaths = Deaths()
    deaths.note_begun(0)
    deaths.note_fetcher_death(0)
    assert not deaths.others_pass(0)
    deaths.note_fetched(1, 0)
    assert not deaths.others_pass(0), "one without pages shows nothing"
    deaths.note_fetched(1, 3)
    assert deaths.others_pass(0) and not deaths.others_pass(1)


def test_one_that_collects_pages_beside_the_dying_fetcher_vouches_too_and_an_earlier_one_does_not():
    deaths = Deaths()
    deaths.note_fetched(1, 3)
    deaths.note_begun(0)
    deaths.note_fetcher_death(0)
    assert not deaths.others_pass(0)
    deaths.note_begun(0)
    deaths.note_fetched(1, 3)
    deaths.note_fetcher_death(0)
    assert deaths.others_pass(0)


def test_the_same_stage_dying_twice_without_a_success_in_between_is_the_machines_fault():
    deaths = Deaths()
    assert not deaths.note_death("fetcher") and not deaths.note_death("extractor")
    deaths.note_success("extractor")
    assert deaths.note_death("fetcher") and not deaths.note_death("extractor")
