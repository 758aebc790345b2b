"""Rules about templates and scripts: texts of strangers stay texts."""

from __future__ import annotations

import re

from django.template import engines

from tests.each import for_each
from tests.tree import files, text

TEMPLATES = files(".html", under=("templates",))
SCRIPTS = files(".js", under=("static",))


class TestPages:
    """Texts of strangers stay texts: no page trusts a string, no script is inline."""

    def test_no_string_is_declared_safe(self):
        unsafe = r"\|\s*safe\b|mark_safe|\|\s*safeseq|autoescape off|SafeString\("
        ours = [
            path for path in files(".py", ".html", ".js") if path.parts[0] != "tests"
        ]
        assert len(ours) > 500
        assert [path for path in ours if re.search(unsafe, text(path))] == []

    @for_each("path", SCRIPTS, ids=str)
    def test_a_script_makes_no_html_and_no_code_of_strings(self, path):
        unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert not re.search(unsafe, text(path))

    @for_each("path", TEMPLATES, ids=str)
    def test_a_template_holds_no_script_of_its_own(self, path):
        for tag in re.findall(r"<script\b[^>]*>", text(path)):
            assert "src=" in tag or 'type="application/json"' in tag, tag
        assert "<style" not in text(path)

    @for_each("path", [*TEMPLATES, *SCRIPTS], ids=str)
    def test_nothing_carries_style_or_handlers_in_attributes(self, path):
        source = text(path)
        assert not re.search(r"""[\s"'<]style\s*=\s*["'{]""", source)
        assert not re.search(r"""[\s"'<]on[a-z]+\s*=\s*["'{]""", source)
        assert "javascript:" not in source

    @for_each("path", TEMPLATES, ids=str)
    def test_a_page_loads_nothing_from_elsewhere(self, path):
        source = text(path).replace("http://www.w3.org/", "")
        assert not re.search(r"""(src|href|action)\s*=\s*["'](https?:)?//""", source)


def _templates_named() -> set[str]:
    names: set[str] = set()
    for path in files(".py", under=("apps", "evalsite")):
        names |= set(re.findall(r'"([a-z_/]+\.html)"', text(path)))
    for path in TEMPLATES:
        names |= set(re.findall(r"""\{%[^%]*?["']([\w/]+\.html)["']""", text(path)))
    return names


def test_every_template_that_is_named_exists_and_compiles():
    for name in sorted(_templates_named()):
        engines["django"].get_template(name)


# Django and the error handlers find these by their names.
FOUND_BY_NAME: set[str] = set()


def test_every_template_is_named_somewhere():
    lying = {path.relative_to("templates").as_posix() for path in TEMPLATES}
    assert lying - _templates_named() == FOUND_BY_NAME
