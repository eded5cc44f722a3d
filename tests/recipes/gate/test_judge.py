"""The gate over a model that follows rules: three verdicts, the guard, early stops, resuming."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from daemon.core import playbook
from daemon.core.errors import Conflict
from daemon.core.learning import Check, Task, TaskSet
from daemon.core.records import Message
from daemon.core.releases import GateResult, Pair, Verdict
from recipes.base import Answer, Which
from recipes.gate.judge import judge
from recipes.gate.pairs import ordered
from recipes.gate.variant import Variant
from tests.fakes.obedient import FakeJob, Model, task

COVERS = ("recipes/gate/hard.py", "recipes/gate/pairs.py", "recipes/gate/reasons.py", "recipes/gate/variant.py")

GATE = [task(number) for number in range(12)]
REGRESSION = [task(number, TaskSet.REGRESSION, form="max_words:40") for number in range(6)]


def ruled(*rules: str) -> Variant:
    book: tuple[playbook.Rule, ...] = ()
    for text in rules:
        book = playbook.added(book, text)
    return Variant({playbook.PATH: playbook.dump(book)})


BEFORE = ruled()
SENTENCE = ruled("Answer in one short sentence.")


def judged(  # noqa: PLR0913 - as the gate's own
    job: FakeJob,
    candidate: Variant,
    tasks: Sequence[Task] = GATE,
    regression: Sequence[Task] = (),
    *,
    done: Sequence[Pair] = (),
    heard: list[Pair] | None = None,
    lost_allowed: int = 1,
) -> GateResult:
    return judge(
        job,
        tasks=tasks,
        regression=regression,
        incumbent=BEFORE,
        candidate=candidate,
        alpha=0.1,
        lost_allowed=lost_allowed,
        done=done,
        on_pair=(heard if heard is not None else []).append,
    )


def named(*losers: str, otherwise: str = "It is so.") -> Model:
    """A model that, told a rule, fails on the prompts named, and without one on all others."""
    return lambda rules, prompt, _: otherwise if bool(rules) is (prompt not in losers) else "No. Sentence"


def test_a_rule_that_works_is_accepted_after_five_pairs() -> None:
    job = FakeJob()
    result = judged(job, SENTENCE, regression=REGRESSION)
    assert result.verdict is Verdict.ACCEPT
    assert (result.wins, result.losses, result.ties, len(result.pairs), result.planned) == (5, 0, 0, 5, 12)
    assert (result.incumbent_passed, result.candidate_passed) == (0, 5)
    assert result.e_value == pytest.approx(10.5)
    assert result.p_value == pytest.approx(1 / 32)
    assert result.guard is not None
    assert (result.guard.tasks, result.guard.held, result.guard.lost, result.guard.passed) == (6, 6, 0, True)
    assert result.reason.startswith("it is better: 5 tasks passed only with it, 0 only without it")


def test_weights_are_judged_with_the_same_rules_told_to_both() -> None:
    job = FakeJob()
    assert judged(job, Variant({}, Which.CANDIDATE)).verdict is Verdict.ACCEPT
    assert {which for which, _, _ in job.asked} == {Which.HEAD, Which.CANDIDATE}


def test_a_worse_candidate_is_turned_down_without_running_the_guard() -> None:
    job = FakeJob(lambda rules, prompt, _: "Too. Long" if rules else "It is.")
    result = judged(job, SENTENCE, regression=REGRESSION)
    assert (result.verdict, result.losses, result.guard) == (Verdict.REJECT, 5, None)
    assert "it is worse: 5 tasks passed only without it" in result.reason


def test_words_that_every_request_pays_for_must_gain_more_than_luck() -> None:
    """BUGS B182: two of twenty tasks more, for a sixth more tokens."""
    tasks = [task(number) for number in range(20)]
    gained = [one.prompt for one in tasks[3:5]]
    job = FakeJob(lambda rules, prompt, _: "It is so." if rules and prompt in gained else "No. Sentence")
    result = judged(job, ruled("Answer in one short sentence.", "Think of the reader first. " * 8), tasks)
    assert (result.wins, result.losses, len(result.pairs)) == (2, 0, 20)
    assert result.verdict is Verdict.INCONCLUSIVE


def test_the_guard_turns_a_better_candidate_down() -> None:
    """BUGS B139."""
    words = [task(number, TaskSet.REGRESSION, form="max_words:4") for number in range(6)]
    job = FakeJob(lambda rules, prompt, _: f"It is about {prompt} and that." if rules else "No sentence")
    result = judged(job, SENTENCE, regression=words)
    assert (result.verdict, result.wins) == (Verdict.REJECT, 5)
    assert result.guard is not None
    assert (result.guard.tasks, result.guard.lost, result.guard.passed) == (6, 6, False)
    assert "it loses 6 of 6 tasks that passed before, 1 may be lost" in result.reason


@pytest.mark.parametrize(("critical", "verdict"), [(False, Verdict.ACCEPT), (True, Verdict.REJECT)])
def test_a_critical_task_may_not_be_lost_though_another_may(critical: bool, verdict: Verdict) -> None:
    guard = [
        Task("tsk_r", "default", TaskSet.REGRESSION, "keep me", Check(expression="kept"), critical),
        task(1, TaskSet.REGRESSION),
    ]
    model: Model = lambda rules, prompt, _: "It is." if rules else "kept" if prompt == "keep me" else "No. Sentence"  # noqa: E731
    result = judged(FakeJob(model), SENTENCE, regression=guard)
    assert result.verdict is verdict
    assert result.guard is not None
    assert result.guard.lost == 1
    assert ('critical task that passed before: "keep me"' in result.reason) is critical


def test_a_regression_task_that_never_passed_cannot_be_lost() -> None:
    never = [task(number, TaskSet.REGRESSION, form="json") for number in range(4)]
    guard = judged(FakeJob(), SENTENCE, regression=never).guard
    assert guard is not None
    assert (guard.tasks, guard.held, guard.lost, guard.passed) == (0, 0, 0, True)


def test_a_model_that_ignores_rules_leaves_it_open_and_says_so() -> None:
    result = judged(FakeJob(lambda rules, prompt, _: "Many. Words"), SENTENCE)
    assert (result.verdict, len(result.pairs)) == (Verdict.INCONCLUSIVE, 12)
    assert "the model does not follow the rules: 0 of 12 tasks passed with it, 0 without" in result.reason
    assert "it would take 5 more tasks that only it passes" in result.reason


def test_what_is_missing_is_counted_exactly() -> None:
    tasks = ordered(GATE)
    wins = [each.prompt for each in tasks[:3]]
    job = FakeJob(lambda rules, prompt, _: "It is." if rules and prompt in wins else "No. Sentence")
    result = judged(job, SENTENCE)
    assert (result.verdict, result.wins, result.losses) == (Verdict.INCONCLUSIVE, 3, 0)
    assert "3 of 12 tasks passed with it, 0 without" in result.reason
    assert "2 more tasks that only it passes" in result.reason


def test_tasks_that_everyone_passes_cannot_tell() -> None:
    result = judged(FakeJob(lambda rules, prompt, _: "It is."), SENTENCE)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "add harder ones" in result.reason


def test_without_gate_tasks_it_says_how_to_add_some_and_still_guards() -> None:
    result = judged(FakeJob(), SENTENCE, [], REGRESSION)
    assert (result.verdict, result.planned) == (Verdict.INCONCLUSIVE, 0)
    assert "reef tasks add" in result.reason
    assert result.guard is not None
    losing = FakeJob(lambda rules, prompt, _: "word " * 50 if rules else "It is.")
    assert judged(losing, SENTENCE, [], REGRESSION).verdict is Verdict.REJECT


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({playbook.PATH: "# Playbook\nrewrite everything"}, "line 2 is not a rule"),
        ({playbook.PATH: "- [r-00001] helpful=0 harmful=0 :: a\n- [r-00001] helpful=0 harmful=0 :: b"}, "two rules"),
        ({playbook.PATH: "- [r-00001] helpful=0 harmful=0 :: a\u202eb"}, "U+202E"),
        ({"notes.md": "x" * 300_000}, "256 KiB"),
    ],
)
def test_a_hard_fault_is_turned_down_before_anything_runs(files: dict[str, str], says: str) -> None:
    job = FakeJob()
    result = judged(job, Variant(files))
    assert result.verdict is Verdict.REJECT
    assert says in result.reason
    assert job.asked == []


def test_counters_alone_are_nothing_to_compare() -> None:
    rules = playbook.counted(playbook.parse(SENTENCE.files[playbook.PATH]), helpful=3)
    job = FakeJob()
    result = judge(
        job, tasks=GATE, regression=[], incumbent=SENTENCE, candidate=Variant({playbook.PATH: playbook.dump(rules)}),
        alpha=0.1, lost_allowed=1, on_pair=lambda _: None,
    )  # fmt: skip
    assert (result.verdict, job.asked) == (Verdict.INCONCLUSIVE, [])
    assert "nothing in it reaches the model" in result.reason


def test_ids_and_counters_are_never_told() -> None:
    (system, user) = SENTENCE.conversation(GATE[0])
    assert (system.role, system.text) == ("system", "- Answer in one short sentence.")
    assert (user.role, user.text) == ("user", "thing 0")
    assert [message.role for message in BEFORE.conversation(GATE[0])] == ["user"]


def test_sides_alternate_and_batches_stay_small() -> None:
    job = FakeJob(lambda rules, prompt, _: "Many. Words")
    judged(job, Variant({}, Which.CANDIDATE), [task(number) for number in range(20)])
    assert [which for which, _, _ in job.asked] == [
        Which.HEAD, Which.CANDIDATE, Which.CANDIDATE, Which.HEAD, Which.HEAD, Which.CANDIDATE
    ]  # fmt: skip
    assert max(len(prompts) for _, prompts, _ in job.asked) == 8
    for (_, one, _), (_, other, _) in zip(job.asked[::2], job.asked[1::2], strict=True):
        assert one == other


def test_each_task_has_its_own_limit() -> None:
    long = Task("tsk_long", "default", TaskSet.GATE, "long", Check(form="one_sentence"), max_tokens=500)
    job = FakeJob(lambda rules, prompt, _: "word " * 100 + "end.")
    result = judged(job, SENTENCE, [*GATE[:3], long])
    assert {most for _, _, most in job.asked} == {64, 500}
    assert {pair.task: pair.candidate for pair in result.pairs}["tsk_long"]
    assert result.candidate_passed == 1  # the others were cut off


def test_weights_that_change_half_way_end_the_comparison() -> None:
    """Half of its answers would be somebody else's: a head that moved, another model."""

    class Swapped(FakeJob):
        def _answer(self, conversation: Sequence[Message], which: Which, max_tokens: int) -> Answer:
            answer = super()._answer(conversation, which, max_tokens)
            return replace(answer, weights="other") if self.answered > 16 else answer

    heard: list[Pair] = []
    with pytest.raises(Conflict, match="what serves changed while the gate compared: head, then other"):
        judged(Swapped(lambda *_: "It is so."), SENTENCE, heard=heard)
    assert len(heard) == 8


def test_many_checks_of_one_answer_prove_no_more_than_one() -> None:
    """Nor does the same question in other words' clothes: what differs by luck would differ in all of them."""
    forms = ("one_sentence", "max_words:20", "max_words:21", "max_words:22", "max_words:23")
    same = [task(number, form=form) for number, form in enumerate(forms)]
    asked = ("What is rain?", "what is rain", "What is  RAIN", "What is rain?!", "What is rain.")
    prompts = [replace(one, prompt=prompt) for one, prompt in zip(same, asked, strict=True)]
    job = FakeJob(lambda rules, _, __: "It is water." if rules else "word " * 50 + "end. And more.")
    result = judged(job, SENTENCE, prompts)
    assert (result.verdict, result.wins, result.planned) == (Verdict.INCONCLUSIVE, 1, 1)
    assert "4 of 5 gate tasks ask what another one asks" in job.said[0]


def test_the_order_is_fixed_whatever_the_order_given() -> None:
    chance = random.Random(7)
    first = [each.id for each in ordered(GATE)]
    for _ in range(5):
        assert [each.id for each in ordered(chance.sample(GATE, len(GATE)))] == first
    assert first != [each.id for each in GATE]


@pytest.mark.parametrize("dies_after", [0, 3, 9, 16, 20, 31])
def test_a_gate_that_was_killed_goes_on_where_it_was_and_says_the_same(dies_after: int) -> None:
    tasks = [task(number) for number in range(24)]
    odd: Model = lambda rules, prompt, _: "It is." if rules and prompt.endswith(("1", "3", "7")) else "No. Sentence"  # noqa: E731
    whole = judged(FakeJob(odd), SENTENCE, tasks, REGRESSION)
    heard: list[Pair] = []
    with pytest.raises(ConnectionError):
        judged(FakeJob(odd, dies_after=dies_after), SENTENCE, tasks, REGRESSION, heard=heard)
    known = list(heard)
    again = FakeJob(odd)
    resumed = judged(again, SENTENCE, tasks, REGRESSION, done=known, heard=heard)
    assert (resumed.verdict, resumed.reason, resumed.pairs) == (whole.verdict, whole.reason, whole.pairs)
    assert resumed.guard == whole.guard
    run_again = {prompt for _, prompts, _ in again.asked for prompt in prompts}
    assert not {pair.prompt for pair in known} & run_again
    assert len({pair.task for pair in heard}) == len(heard)


@pytest.mark.parametrize("known", [1, 5, 8, 13, 24, 26])
def test_pairs_of_a_half_written_batch_are_not_run_again(known: int) -> None:
    tasks = [task(number) for number in range(24)]
    heard: list[Pair] = []
    whole = judged(FakeJob(lambda rules, prompt, _: "Many. Words"), SENTENCE, tasks, REGRESSION, heard=heard)
    job = FakeJob(lambda rules, prompt, _: "Many. Words")
    assert judged(job, SENTENCE, tasks, REGRESSION, done=heard[:known]).pairs == whole.pairs
    run_again = [prompt for which, prompts, _ in job.asked for prompt in prompts]
    assert sorted(run_again) == sorted(2 * [pair.prompt for pair in heard[known:]])


def test_a_finished_gate_asks_nothing_again() -> None:
    heard: list[Pair] = []
    judged(FakeJob(), SENTENCE, regression=REGRESSION, heard=heard)
    job = FakeJob()
    assert judged(job, SENTENCE, regression=REGRESSION, done=heard).verdict is Verdict.ACCEPT
    assert job.asked == []


def test_every_pair_is_heard_once_and_progress_is_told() -> None:
    heard: list[Pair] = []
    job = FakeJob()
    result = judged(job, SENTENCE, heard=heard)
    assert tuple(heard) == result.pairs
    assert job.steps[0][:3] == ("gate", 0, 12)
    assert job.steps[-1] == ("gate", 5, 12, "5 better, 0 worse")


def test_answers_in_the_evidence_are_cut() -> None:
    result = judged(FakeJob(lambda rules, prompt, _: "x" * 5000), SENTENCE)
    assert max(len(pair.candidate_answer) for pair in result.pairs) <= 400


def test_an_equal_candidate_is_accepted_at_most_alpha_by_the_whole_gate() -> None:
    """The same as the statistics promise, through batches, order and stops: both sides pass by coin."""
    runs, accepted = 300, 0
    for seed in range(runs):
        chance = random.Random(seed)
        tasks = [task(number) for number in range(24)]
        model: Model = lambda rules, prompt, _: "It is." if chance.random() < 0.5 else "No. Sentence"  # noqa: B023, E731
        accepted += judged(FakeJob(model), SENTENCE, tasks).verdict is Verdict.ACCEPT
    assert accepted / runs <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / runs)
    assert accepted > 0  # and the coin does fall so sometimes: the gate is no wall
