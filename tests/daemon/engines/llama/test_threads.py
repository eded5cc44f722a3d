import itertools

from daemon.engines.llama.threads import Threads


def run(threads: Threads, share: float, seconds: float, start: float = 0.0) -> list[int]:
    """Steps of 50 ms, of which the threads ran for ``share``; the counts there were."""
    counts = []
    for step in range(round(seconds / 0.05)):
        threads.note(0.05, 0.05 * threads.count * share, start + step * 0.05)
        counts.append(threads.count)
    return counts


def test_alone_all_cores_are_used() -> None:
    assert set(run(Threads(8), 0.99, 60)) == {8}


def test_a_short_disturbance_changes_nothing() -> None:
    threads = Threads(4)
    run(threads, 1.0, 0.2)
    assert run(threads, 0.6, 0.05) == [4]


def test_beside_others_threads_are_given_up_one_by_one_but_the_last() -> None:
    counts = run(Threads(4), 0.5, 3)
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1


def test_they_come_back_when_the_others_are_gone() -> None:
    threads = Threads(2)
    run(threads, 0.5, 1)
    assert threads.count == 1
    assert run(threads, 1.0, 5, start=1)[-1] == 2


def test_a_busy_machine_is_tried_less_and_less_often() -> None:
    threads = Threads(2)
    tries, before = [], 2
    for step in range(2400):  # two minutes in which one thread always runs and two never do
        threads.note(0.05, 0.05 * (1.0 if threads.count == 1 else 1.2), step * 0.05)
        if threads.count > before:
            tries.append(step * 0.05)
        before = threads.count
    gaps = [b - a for a, b in itertools.pairwise(tries)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 30


def test_one_thread_stays_one() -> None:
    assert set(run(Threads(1), 0.2, 5)) == {1}
