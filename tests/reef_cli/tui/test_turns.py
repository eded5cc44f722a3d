"""Work of a thread: in order, and none of it ends the thread."""

from reef_cli.tui.turns import Turns


def test_in_order_and_on_after_a_failure() -> None:
    done: list[object] = []
    turns = Turns("test", lambda error: done.append(repr(error)))

    def fails() -> None:
        raise ValueError("no")

    for n in range(3):
        turns.do(lambda n=n: done.append(n))  # type: ignore[misc]
        turns.do(fails)
    turns.stop(60)
    assert done == [0, "ValueError('no')", 1, "ValueError('no')", 2, "ValueError('no')"]


def test_one_that_never_began_ends() -> None:
    Turns("test", print).stop(60)
