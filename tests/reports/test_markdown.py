from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from apps.reports import markdown
from apps.reports.document import UnreadableReport
from tests.reports import documents
from tests.reports.hostile_documents import hostile

ALLOWED_INLINE = {
    "text",
    "softbreak",
    "code_inline",
    "strong_open",
    "strong_close",
    "text_special",
}


def parse(text: str):
    return MarkdownIt("commonmark", {"html": True}).enable(["table"]).parse(text)


def inline_types(text: str) -> set[str]:
    return {c.type for t in parse(text) for c in t.children or ()}


def block_shape(text: str) -> list[tuple[str, str, int]]:
    return [(t.type, t.tag, t.level) for t in parse(text) if t.type != "fence"]


def shown_texts(text: str) -> str:
    """What a reader sees: the contents of all inline tokens and fences."""
    seen = []
    for token in parse(text):
        seen += [child.content for child in token.children or ()]
        seen += [token.content] if token.type == "fence" else []
    return "".join(seen)


def test_hostile_text_makes_no_link_image_html_or_heading():
    text = markdown.render(hostile())
    assert inline_types(text) <= ALLOWED_INLINE
    assert not [t for t in parse(text) if t.type in {"html_block", "hr", "lheading"}]


def test_hostile_text_leaves_the_structure_as_the_template_made_it():
    acting = markdown.render(hostile())
    harmless = markdown.render(hostile(words="plain words " * 20, long="x"))
    assert block_shape(acting) == block_shape(harmless)


@pytest.mark.parametrize(
    "words",
    [
        "`",
        "``a` ``` b",
        "a|b\\|c",
        "\\",
        " leading and trailing ",
        "# h",
        "- x",
        "1. x",
        "> q",
        "---",
        "===",
        "+++\ntitle\n+++",
        "    indented",
        "<b>x</b>",
        "[a](b)",
        "![a](b)",
        "https://example.invalid",
        "&lt;",
        "a\r\n\r\n# b",
        "a\x00\u2028# b",
        "```\n# x\n```",
        "~~~\nx",
        "*a* _b_ __c__",
        "[ref]: http://example.invalid",
        "<!-- x",
        "| a | b |\n|---|---|",
        "setext\n===",
        "日本語",
        "",
    ],
)
def test_one_text_stays_inert_wherever_it_stands(words):
    text = markdown.render(hostile(words=words, long=""))
    harmless = markdown.render(hostile(words="plain", long=""))
    assert inline_types(text) <= ALLOWED_INLINE
    headings = [t.tag for t in parse(text) if t.type == "heading_open"]
    assert headings == [t.tag for t in parse(harmless) if t.type == "heading_open"]


@pytest.mark.parametrize("words", ["`", "``a` ``` b", "a|b", "a\\|b", "\\", "a`"])
def test_a_code_span_shows_the_text_unchanged(words):
    assert parse(markdown.code_span(words))[1].children[0].content == words


def test_a_pipe_in_a_table_cell_stays_in_its_cell():
    cell = markdown.code_span("a|b`|", in_table=True)
    rows = parse(f"| x | y |\n|---|---|\n| {cell} | z |")
    cells = [t.children[0].content for t in rows if t.type == "inline"]
    assert cells == ["x", "y", "a|b`|", "z"]


def test_hidden_characters_are_written_out():
    text = markdown.render(hostile())
    assert "\u202e" not in text
    assert "\u200b" not in text
    assert "[U+202E]" in text


def test_it_holds_the_whole_evidence_card():
    text = shown_texts(markdown.render(documents.with_decision()))
    for part in (
        "Output fell from 112 to 43 tokens over 6 calls",
        "1 of 720 (0.14\u202f%)",
        "112, 96, 81, 67, 52, 43",
        "the invocation began",
        "writer",
        "gpt-4o-2024-08-06",
        "6 of 6 calls",
        "ef56" * 16,
        "9f2c" * 16,
        "2026-11-30 07:01 UTC",
        "Mori Aiko",
        *documents.NOTE.split("\n"),
    ):
        assert part in text


def test_it_shows_an_undone_decision_in_the_history():
    text = markdown.render(documents.with_decision())
    assert "Dismissed: normal convergence" in text
    assert "took the decision back" in text


def test_nothing_decided_is_no_share():
    text = markdown.render(documents.document())
    assert "no decisions yet" in text
    assert "100 %" not in text.replace("\u202f", " ").replace(
        "2,310 model calls (100 %)", ""
    )


def test_a_document_of_the_first_version_is_read_and_says_nothing_of_agents():
    old = {**documents.document(), "format_version": 1}
    del old["assessment"]
    text = markdown.render(old)
    assert "Masking: not assessed" in text
    assert "green" not in text
    assert "Agents beside the outcome" not in text
    assert "contracts in force" not in text


def test_masking_is_not_assessed_and_never_green():
    text = markdown.render(documents.document())
    assert "Masking: not assessed" in text
    assert "green" not in text


def test_all_signals_are_in_the_markdown():
    text = markdown.render(documents.with_collapses(350))
    assert text.count("### Signal ") == 350


def test_the_same_document_gives_the_same_text():
    assert markdown.render(hostile()) == markdown.render(hostile())


def test_a_document_of_another_format_version_is_refused_with_a_sentence():
    strange = {**documents.document(), "format_version": 99}
    with pytest.raises(UnreadableReport, match="format version 99"):
        markdown.render(strange)
    broken = {**documents.document(), "counts": 3}
    with pytest.raises(UnreadableReport, match="cannot be read"):
        markdown.render(broken)
