"""Sharing loops among threads, and calling functions ahead of time."""

from threading import Event, current_thread

import pytest

from counterpoint.core import threads


def test_what_is_called_ahead_runs_in_another_thread(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 2)
    called, where = Event(), []

    def function(name):
        where.append((name, current_thread()))
        called.set()

    threads.ahead(function, "loop")
    assert called.wait(timeout=60)
    [(name, thread)] = where
    assert name == "loop"
    assert thread is not current_thread()


def test_with_one_thread_nothing_is_called_ahead(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 1)
    monkeypatch.setattr(threads, "_threads", lambda: pytest.fail("there is no other thread"))
    threads.ahead(pytest.fail, "it would hold up the caller")


def test_a_thread_that_is_taken_is_left_alone(monkeypatch):
    """Rows are shared among those that are left, and among all again when the work beside is done."""
    monkeypatch.setattr(threads, "THREADS", 2)
    shares = []

    def loop(start, stop):
        shares.append((start, stop))

    rows = 2 * threads.FEWEST
    with threads.taken():
        threads.run(loop, rows)
    assert shares == [(0, rows)]
    with pytest.raises(ZeroDivisionError), threads.taken():
        _ = 1 / 0
    shares.clear()
    threads.run(loop, rows)
    assert sorted(shares) == [(0, threads.FEWEST), (threads.FEWEST, rows)]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_work_side_by_side_comes_back_in_order(monkeypatch, number):
    """Compiled loops within take what threads are left, and nobody waits for who waits for them."""
    monkeypatch.setattr(threads, "THREADS", number)
    monkeypatch.setattr(threads, "_pool", None)

    def function(item):
        seen = []
        threads.run(lambda start, stop: seen.append(stop - start), 4 * threads.FEWEST)
        assert sum(seen) == 4 * threads.FEWEST
        return 10 * item

    assert threads.side_by_side(function, range(30)) == [10 * item for item in range(30)]
    assert threads.side_by_side(function, []) == []
    with pytest.raises(ZeroDivisionError):
        threads.side_by_side(lambda item: 1 / item, [1, 0])
    assert threads._taken == 0
