"""Tasks in the store: all or none, merged, held out."""

from dataclasses import replace
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, NotFound, StoreError, UsageError
from daemon.core.ids import new_id
from daemon.core.learning import Check, Task, TaskSet
from daemon.store.db import Store
from daemon.store.tasks import prompt_key


def task(prompt: str, set: TaskSet = TaskSet.GATE, *, scenario: str = "default", form: str = "json") -> Task:
    return Task(new_id("tsk"), scenario, set, prompt, Check(form=form))


def add(store: Store, *new: Task) -> list[tuple[Task, bool]]:
    return store.add_tasks(new).result(5)


def test_what_is_added_is_read_back_whole(store: Store, path: Path) -> None:
    checks = [Check(form="json"), Check(expression=r"\bhöre\b"), Check(command="sh -c 'true'")]
    new = [
        Task(new_id("tsk"), "work/api", TaskSet.REGRESSION, f"prompt {n}\nlines", check, n == 1, 100 + n, 5 + n)
        for n, check in enumerate(checks)
    ]
    assert add(store, *new) == [(each, True) for each in new]
    assert store.tasks("work/api") == new
    assert store.tasks("default") == []
    store.close()
    again = Store.open(path, durability="normal")
    assert again.tasks("work/api") == new
    again.close()


def test_a_task_gets_its_time_when_it_is_added(store: Store) -> None:
    ((kept, _),) = add(store, task("when"))
    assert kept.created_ns > 1_600_000_000_000_000_000


def test_the_same_task_again_is_merged(store: Store) -> None:
    first = task("What is  rain?\n", TaskSet.REGRESSION)
    add(store, first)
    same = replace(task("What is rain?", TaskSet.REGRESSION), critical=True, max_tokens=999)
    ((kept, created),) = add(store, same)
    assert (kept.id, created, kept.critical, kept.max_tokens) == (first.id, False, True, 999)
    ((kept, created),) = add(store, replace(task("What is rain?", TaskSet.REGRESSION), max_tokens=5))
    assert (created, kept.critical, kept.max_tokens) == (False, True, 999)
    assert len(store.tasks("default")) == 1


def test_the_same_prompt_may_have_other_checks_sets_and_scenarios(store: Store) -> None:
    add(
        store, task("p"), task("p", form="upper_case"), task("p", TaskSet.REGRESSION), task("p", scenario="other"),
        replace(task("p"), check=Check(expression="json")),
    )  # fmt: skip
    assert [len(store.tasks(scenario)) for scenario in ("default", "other")] == [4, 1]
    assert [each.set for each in store.tasks("default", TaskSet.REGRESSION)] == [TaskSet.REGRESSION]


def test_duplicates_within_one_call_are_merged_too(store: Store) -> None:
    assert [created for _, created in add(store, task("a"), task("b"), task("a"))] == [True, True, False]


@pytest.mark.parametrize("judges", [TaskSet.GATE, TaskSet.REGRESSION])
@pytest.mark.parametrize("search_first", [True, False])
def test_a_prompt_never_guides_and_judges(store: Store, judges: TaskSet, search_first: bool) -> None:
    guiding, judging = task("the  prompt", TaskSet.SEARCH), task("the prompt", judges, form="upper_case")
    first, second = (guiding, judging) if search_first else (judging, guiding)
    add(store, first)
    with pytest.raises(Conflict, match=r"the .*prompt"):
        add(store, task("innocent"), second)
    assert [each.id for each in store.tasks("default")] == [first.id]  # all or none
    with pytest.raises(Conflict):
        add(store, task("both", TaskSet.SEARCH), task("both", judges))
    assert len(add(store, replace(second, scenario="elsewhere"))) == 1


def test_removing(store: Store) -> None:
    one, two = task("one"), task("two")
    add(store, one, two)
    assert store.remove_task(one.id).result(5).prompt == "one"
    assert [each.id for each in store.tasks("default")] == [two.id]
    with pytest.raises(NotFound, match=one.id):
        store.remove_task(one.id).result(5)
    assert add(store, task("one"))[0][1]  # and it may come back


def test_pages_go_backwards_without_gaps(store: Store) -> None:
    new = [task(f"prompt {n}") for n in range(7)]
    add(store, *new)
    add(store, task("elsewhere", scenario="other"))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        rows, cursor = store.task_page("default", limit=3, before=cursor)
        seen += [row.prompt for row in rows]
        if cursor is None:
            break
    assert seen == [each.prompt for each in reversed(new)]
    with pytest.raises(UsageError, match="nonsense"):
        store.task_page("default", before="nonsense")


def test_secrets_in_prompts_are_redacted(store: Store, path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    ((kept, _),) = add(store, task(f"use {secret} to log in"))
    assert secret not in kept.prompt
    assert secret.encode() not in path.read_bytes() + path.with_name("reef.db-wal").read_bytes()


def test_the_key_of_a_prompt_folds_blanks_only() -> None:
    assert prompt_key(" a\n b ") == prompt_key("a b")
    assert prompt_key("a b") != prompt_key("A b")


def test_the_schema_refuses_a_check_that_is_none_or_two(store: Store) -> None:
    with pytest.raises(StoreError, match="CHECK"):
        add(store, replace(task("x"), check=Check()))
    with pytest.raises(StoreError, match="CHECK"):
        add(store, replace(task("x"), check=Check(form="json", command="true")))
    assert store.verify() == []
