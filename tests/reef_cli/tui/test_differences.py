"""A diff, file by file, whatever its lines look like."""

from reef_cli.tui.differences import FileDiff, by_file


def test_what_looks_like_a_head_inside_a_hunk_is_a_line() -> None:
    first = "--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n--- a rule\n+++ b rule\n same\n"
    text = f"{first}--- a/y.md\n+++ b/y.md\n@@ -1 +0,0 @@\n-y\n"
    assert by_file(text) == [
        FileDiff("x.md", ("@@ -1,2 +1,2 @@", "--- a rule", "+++ b rule", " same"), 1, 1),
        FileDiff("y.md", ("@@ -1 +0,0 @@", "-y"), 0, 1),
    ]


def test_gits_own_heads() -> None:
    """As the daemon asks for them: without prefixes."""
    text = (
        "diff --git harness/old.md harness/old.md\ndeleted file mode 100644\nindex 1..0\n--- harness/old.md\n"
        "+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
        "diff --git weights/a.gguf weights/a.gguf\nindex 1..2 100644\nBinary files differ\n"
    )
    assert by_file(text) == [
        FileDiff(
            "harness/old.md",
            ("deleted file mode 100644", "@@ -1 +0,0 @@", "-gone", "\\ No newline at end of file"),
            0,
            1,
        ),
        FileDiff("weights/a.gguf", ("Binary files differ",), 0, 0),
    ]


def test_nothing_is_no_file() -> None:
    assert by_file("") == []
