"""Each rule finds its examples, and no rule finds what only looks like a secret."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.privacy.people import has_issuer, passes_luhn
from apps.engine.privacy.redaction import redact_text
from apps.engine.privacy.rules import RULES, by_slug
from tests.each import for_each

HITS = [pytest.param(r, text, id=f"{r.slug}-{n}") for r in RULES
        for n, text in enumerate(r.hits)]  # fmt: skip
MISSES = [pytest.param(text, id=f"{r.slug}-{n}") for r in RULES
          for n, text in enumerate(r.misses)]  # fmt: skip

HARMLESS = (
    "550e8400-e29b-41d4-a716-446655440000",
    "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit d6cd1e2bd19e03a81132a23b2025920577f84e37",
    "2026-03-01T12:00:00.123456789+02:00",
    "1772000000000000000",
    "1772000000123",
    "order 4929 is late, so are 1234 5678 and 9012",
    "call me: +1 (555) 010-9999 or 0049 151 23456789",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "call_4bQ9xT2mZ7kV1cN8wR5yH3jL toolu_01A09q90qw90lq917835lq9",
    "from sk-learn import x; conda install -c conda-forge scikit-learn",
    "@app.route('/x')\n@property\n@dataclass(frozen=True)",
    "ssh deploy@web01 && deploy@web01:~/app$ ls",
    "user@MacBook-Pro project % git push git@gitlab.com:team/app.git",
    "npm install @types/node@20.1.0 react@^18.2.0",
    "foo@v1.2 bar@2.0.0 actions/checkout@v4",
    "max_tokens=1024, prompt_tokens: 129, completion_tokens=103",
    "the secret of good code; a token of thanks; keyboard: us",
    "tokenizer = AutoTokenizer.from_pretrained('meta-llama/Llama-3-8b')",
    "os.environ['OPENAI_API_KEY'], ${API_KEY}, <YOUR_TOKEN>, $(cat token1)",
    "public_key: none; key1=value1&key2=value2",
    "Basic authentication is used; Bearer authentication too.",
    "flight HAT136 credit_card_7815826 gift_card_8887175 ending in 3141",
    "0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
    "3.141592653589793238462643383279",
    "4111111111111111111111111111",
    "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00",
    "x = a @ b.T; y = W@x.mean(0)",
    "http://localhost:8000/a:b@c",
    "eyJhbGciOi is how a token begins",
    "logo@2x.png sprite@3x.webp",
)


@for_each(("rule", "text"), HITS)
def test_it_finds_its_own_examples(rule, text):
    counts = Counter()
    redacted = redact_text(text, counts)
    assert rule.mark in redacted
    assert counts[rule.slug] == 1


@for_each("text", MISSES)
def test_no_rule_finds_what_another_one_leaves(text):
    for rule in RULES:
        assert not list(rule.find(text)), rule.slug


@for_each("text", HARMLESS)
def test_no_rule_finds_a_harmless_text(text):
    for rule in RULES:
        assert not list(rule.find(text)), rule.slug


def test_every_rule_tells_people_what_it_does():
    assert len({rule.slug for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.slug)
        assert rule.looks_for.endswith(".")
        assert rule.source.startswith("https://")
        assert rule.hits
        assert len(rule.misses) >= 3
        assert by_slug(rule.slug) is rule


def test_a_mark_is_never_found_again():
    for rule in RULES:
        for other in RULES:
            assert not list(other.find(f'"api_key": "{rule.mark}" {rule.mark}'))


@for_each(
    ("number", "is_right"),
    [("4111111111111111", True), ("4111111111111112", False), ("79927398713", True)],
)
def test_the_check_digit_is_that_of_luhn(number, is_right):
    assert passes_luhn(number) is is_right


@for_each(
    ("number", "is_known"),
    [
        ("2221000000000009", True),
        ("2720990000000000", True),
        ("2721000000000000", False),
        ("5600000000000000", False),
        ("340000000000000", True),
        ("350000000000000", False),
        ("1234567890123456", False),
    ],
)
def test_a_number_needs_an_issuer(number, is_known):
    assert has_issuer(number) is is_known


@given(st.integers(min_value=10**15, max_value=10**16 - 1))
def test_digits_without_an_issuer_or_a_check_digit_are_never_a_card(number):
    text = str(number)
    found = list(by_slug("payment-card").find(text))
    assert bool(found) <= (has_issuer(text) and passes_luhn(text))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
@pytest.mark.parametrize(
    "piece",
    ["a", "@", "a@", "1", "4111 ", "key=", "-----BEGIN PRIVATE KEY-----", "://a:", "\\n",
     "eyJ", "eyJaaaaaaaa.", "sk-", "password:", "x.", "xoxb-a-", "Bearer ", "A_"],
)  # fmt: skip
def test_hostile_texts_take_no_more_than_linear_time(rule, piece):
    text = piece * (60_000 // len(piece))
    start = time.process_time()
    list(rule.find(text))
    assert time.process_time() - start < 1.5
