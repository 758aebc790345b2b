"""Rules for keys that their makers gave a form of their own.

The examples are made up: right in form, never issued. They are joined from pieces so
that scanners of source code do not take them for real ones.
"""

from __future__ import annotations

import re
from typing import Final

from apps.engine.privacy.rule import Rule, matches_of, random_matches_of, starting

_MIX: Final = "4bQ9xT2mZ7kV1cN8wR5yH3jL6pD0sF"
# Of the many ids with an underscore in traces, those of calls and messages are no keys.
_UNDERSCORE_RUN: Final = re.compile(rb"_(?<!call_)(?<!toolu_)(?<!msg_)[a-z0-9]{16}")


def _has_underscore_run(low: bytes) -> bool:
    return _UNDERSCORE_RUN.search(low) is not None


_HEX: Final = "9f86d081884c7d659a2feaa0c55ad015"

OPENAI: Final = Rule(
    slug="openai-key",
    label="OpenAI key",
    looks_for=(
        "Keys that begin with sk-, as OpenAI, OpenRouter, DeepSeek, LiteLLM and "
        "Langfuse give them out: at least 20 letters and digits after the prefix."
    ),
    source="https://platform.openai.com/docs/api-reference/authentication",
    triggers=(b"sk-",),
    find=random_matches_of(
        starting(
            "sk-",
            then=(
                r"(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}"
                r"|lf-[0-9a-f]{8}-[0-9a-f\-]{27}"
                r"|(?:[a-z0-9]{1,8}-){0,2}[A-Za-z0-9]{20,})(?![A-Za-z0-9])"
            ),
        )
    ),
    hits=(
        f"key sk-{_MIX}",
        f'{{"k": "sk-proj-{_MIX}_{_MIX}"}}',
        f"sk-or-v1-{_HEX}{_HEX}",
        f"line\\nsk-{_MIX}",
    ),
    misses=(
        "pip install sk-learn",
        "sk-learn-pipeline-with-preprocessing-steps",
        "task-4bQ9xT2mZ7kV1cN8wR5yH3",
        "sk-ThisHasNoDigitsInItAtAllSoItIsNone",
        "disk-1234567890123456789012",
    ),
)

ANTHROPIC: Final = Rule(
    slug="anthropic-key",
    label="Anthropic key",
    looks_for="Keys of Anthropic: sk-ant- and at least 20 letters and digits.",
    source="https://docs.anthropic.com/en/api/overview",
    triggers=(b"sk-ant-",),
    find=matches_of(starting("sk-ant-", then=r"[A-Za-z0-9_\-]{20,}")),
    hits=(f"sk-ant-api03-{_MIX}-{_MIX}AA", f"x-api-key: sk-ant-{_MIX}"),
    misses=("sk-ant-", "sk-ant-api03-…", "risk-ant-colony-optimisation-in-2024"),
)

GITHUB: Final = Rule(
    slug="github-token",
    label="GitHub token",
    looks_for=(
        "Tokens of GitHub: ghp_, gho_, ghu_, ghs_ or ghr_ and 36 letters and digits, "
        "or github_pat_ and at least 22."
    ),
    source="https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/",
    triggers=(
        b"ghp_",
        b"gho_",
        b"ghu_",
        b"ghs_",
        b"ghr_",
        b"github_pat_",
    ),
    find=matches_of(
        starting("ghp_", "gho_", "ghu_", "ghs_", "ghr_", then=r"[A-Za-z0-9]{36,}"),
        starting("github_pat_", then=r"[A-Za-z0-9_]{22,}"),
    ),
    hits=(
        f"ghp_{_MIX}Ab3dE9",
        f"git clone https://ghs_{_MIX}Ab3dE9@host/x",
        f"github_pat_11{_MIX}",
    ),
    misses=("ghp_short", "the ghp_ prefix", "github_pat_tern_matching"),
    gate=_has_underscore_run,
)

AWS: Final = Rule(
    slug="aws-key-id",
    label="AWS key id",
    looks_for=(
        "Access key ids of Amazon Web Services: AKIA or ASIA and 16 capitals or "
        "digits. The secret beside it is found by its name."
    ),
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
    triggers=(
        b"akia",
        b"asia",
    ),
    find=matches_of(starting("AKIA", "ASIA", then=r"[A-Z2-7]{16}(?![A-Za-z0-9])")),
    hits=("AKIA" + "Q3EXAMPLE7KEYID2", '"ASIA' + 'Y34FZKBOKMUTVV7A"'),
    misses=(
        "ASIAPACIFIC",
        "AKIA",
        "ASIAN FOOD MARKET IN TOWN",
        "xAKIAQ3EXAMPLE7KEYID2",
    ),
)

GOOGLE: Final = Rule(
    slug="google-key",
    label="Google key",
    looks_for=(
        "API keys of Google (AIza and 35 characters), its OAuth client secrets "
        "(GOCSPX-) and access tokens (ya29.)."
    ),
    source="https://cloud.google.com/docs/authentication/api-keys",
    triggers=(
        b"aiza",
        b"gocspx-",
        b"ya29.",
    ),
    find=matches_of(
        starting("AIza", then=r"[A-Za-z0-9_\-]{35}(?![A-Za-z0-9_\-])"),
        starting("GOCSPX-", then=r"[A-Za-z0-9_\-]{20,}"),
        starting("ya29.", then=r"[A-Za-z0-9_\-]{20,}"),
    ),
    hits=(f"key=AIza{_MIX}Sy4x-", f"GOCSPX-{_MIX}", f"ya29.a0{_MIX}"),
    misses=("AIzawa", "ya29.html", f"AIza{_MIX}"),
)

SLACK: Final = Rule(
    slug="slack-token",
    label="Slack token",
    looks_for="Tokens of Slack (xoxb-, xoxp- …) and addresses of its webhooks.",
    source="https://api.slack.com/concepts/token-types",
    triggers=(b"xox", b"slack.com/"),
    find=random_matches_of(
        re.compile(
            r"xox[abeoprs](?:\.xox[bp])?-(?:[A-Za-z0-9]+-){1,4}[A-Za-z0-9]{10,}"
        ),
        re.compile(
            r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9]+/[A-Za-z0-9]+/"
            r"[A-Za-z0-9/]{16,}"
        ),
    ),
    hits=(
        "xoxb-" + "123456789012-1234567890123-aB3dE5gH7jK9mN1pQ3sT5vW7",
        "https://hooks.slack"
        + ".com/services/T0AB12CD3/B0EF45GH6/aB3dE5gH7jK9mN1pQ3sT5vW7",
    ),
    misses=("xoxo", "xoxb-your-token", "hooks.slack.com/services"),
)

STRIPE: Final = Rule(
    slug="stripe-key",
    label="Stripe key",
    looks_for="Secret and restricted keys of Stripe (sk_live_, rk_test_ …), whsec_.",
    source="https://docs.stripe.com/keys",
    triggers=(
        b"sk_live_",
        b"sk_test_",
        b"rk_live_",
        b"rk_test_",
        b"whsec_",
    ),
    find=random_matches_of(
        starting(
            "sk_live_", "sk_test_", "rk_live_", "rk_test_", then=r"[A-Za-z0-9]{16,}"
        ),
        starting("whsec_", then=r"[A-Za-z0-9+/]{24,}"),
    ),
    hits=("sk_" + f"live_{_MIX}", "rk_" + f"test_{_MIX}", f"whsec_{_MIX}"),
    misses=("pk_live_" + _MIX, "sk_test_results", "task_live_4bQ9xT2mZ7kV1cN8"),
    gate=_has_underscore_run,
)

MODEL_HUBS: Final = Rule(
    slug="hub-token",
    label="hub token",
    looks_for=(
        "Tokens of Hugging Face (hf_), npm (npm_), Groq (gsk_) and Replicate (r8_) "
        "with at least 30 letters and digits after the prefix."
    ),
    source="https://docs.github.com/en/code-security/reference/secret-security/supported-secret-scanning-patterns",
    triggers=(
        b"hf_",
        b"npm_",
        b"gsk_",
        b"r8_",
    ),
    gate=_has_underscore_run,
    find=random_matches_of(
        starting("hf_", then=r"[A-Za-z0-9]{30,}"),
        starting("npm_", then=r"[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
        starting("gsk_", then=r"[A-Za-z0-9]{40,}"),
        starting("r8_", then=r"[A-Za-z0-9]{37}(?![A-Za-z0-9_])"),
    ),
    hits=(f"HF_TOKEN hf_{_MIX}Ab3d", f"npm_{_MIX}Ab3dE9", f"gsk_{_MIX}{_MIX[:20]}"),
    misses=("hf_model_name_or_path", "npm_config_registry", "hf_transformers", "npm_x"),
)

SERVICES: Final = Rule(
    slug="service-token",
    label="service token",
    looks_for=(
        "Tokens of GitLab (glpat-), PyPI (pypi-), SendGrid (SG.) and of "
        "this product (evs_)."
    ),
    source="https://docs.gitlab.com/security/tokens/#token-prefixes",
    triggers=(
        b"glpat-",
        b"pypi-ag",
        b"sg.",
        b"evs_",
    ),
    find=random_matches_of(
        starting("glpat-", then=r"[A-Za-z0-9_\-]{20,}"),
        starting("pypi-Ag", then=r"[A-Za-z0-9_\-]{50,}"),
        starting("SG.", then=r"[A-Za-z0-9_\-]{20,24}\.[A-Za-z0-9_\-]{39,50}"),
        starting("evs_", then=r"[A-Za-z0-9_\-]{43}"),
    ),
    hits=(
        f"glpat-{_MIX[:20]}",
        f"evs_{_MIX}Ab3dE9gH5jK7m",
        f"SG.{_MIX[:22]}.{_MIX}Ab3dE9gH5jK7m",
    ),
    misses=(
        "glpat-",
        "MSG.payload.content",
        "evs_of_the_last_seven_days_of_this_month_x1",
    ),
)

JWT: Final = Rule(
    slug="jwt",
    label="JSON web token",
    looks_for=(
        "JSON web tokens: three parts in base64 with dots between them, of which the "
        "first two begin as JSON objects do (eyJ)."
    ),
    source="https://www.rfc-editor.org/rfc/rfc7519",
    triggers=(b"eyj",),
    find=matches_of(
        starting(
            "eyJ",
            then=(r"[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{16,}"),
        )
    ),
    hits=(f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{_MIX}",),
    misses=("eyJhbGciOiJIUzI1NiJ9", "eyJ.eyJ.x", "keyJhbGciOiJIUzI1.eyJzdWIiOiI.x"),
)

PRIVATE_KEY: Final = Rule(
    slug="private-key",
    label="private key",
    looks_for=(
        "Blocks between BEGIN … PRIVATE KEY and its END, also as one line with \\n in "
        "it; without an END, what looks like the inside of one."
    ),
    source="https://www.rfc-editor.org/rfc/rfc7468",
    triggers=(b"private key",),
    find=matches_of(
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[A-Za-z0-9+/=\s:,.()\\-](?!-----END)){0,40000}"
            r"(?:[\s\S]?-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
        )
    ),
    hits=(
        f"-----BEGIN RSA PRIVATE KEY-----\n{_MIX}{_MIX}\n-----END RSA PRIVATE KEY-----",
        f'"-----BEGIN PRIVATE KEY-----\\n{_MIX}\\n-----END PRIVATE KEY-----\\n"',
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{_MIX}{_MIX}",
    ),
    misses=(
        f"-----BEGIN PUBLIC KEY-----\n{_MIX}\n-----END PUBLIC KEY-----",
        f"-----BEGIN CERTIFICATE-----\n{_MIX}\n-----END CERTIFICATE-----",
        "BEGIN PRIVATE KEY",
    ),
)

VENDOR_KEYS: Final = (
    PRIVATE_KEY, ANTHROPIC, OPENAI, GITHUB, AWS, GOOGLE, SLACK, STRIPE,
    MODEL_HUBS, SERVICES, JWT,
)  # fmt: skip
