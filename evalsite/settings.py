"""All settings, from the environment. `.env.example` lists every one of them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from evalsite.embedded import default_data_dir, embedded_urls
from evalsite.environment import from_environment, listed
from evalsite.sealing_keys import raw_keys, replay_keys
from evalsite.secret_key import lasting_key

BASE_DIR = Path(__file__).resolve().parent.parent


class Environment(BaseSettings):
    """What may be set from outside, with types and defaults."""

    model_config = SettingsConfigDict(
        env_prefix="EVALSITE_", env_file=BASE_DIR / ".env", extra="ignore"
    )

    database_url: str = Field(default="", validation_alias="DATABASE_URL")
    redis_url: str = Field(default="", validation_alias="REDIS_URL")
    data_dir: Path = Field(default_factory=default_data_dir)
    secret_key: SecretStr = SecretStr("")
    debug: bool = False
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    https: bool = False
    max_upload_bytes: int = Field(default=500_000_000, gt=0)
    max_unpacked_bytes: int = Field(default=2_000_000_000, gt=0)
    max_structure_bytes: int = Field(default=200_000_000, gt=0)
    raw_bytes: Literal["kept", "encrypted", "not_kept"] = "kept"
    raw_key: SecretStr = SecretStr("")
    lease_seconds: int = Field(default=20, ge=1)
    claim_seconds: int = Field(default=600, ge=5)
    live_settle_seconds: int = Field(default=2, ge=0)
    live_quiet_seconds: int = Field(default=30, ge=1)
    live_late_seconds: int = Field(default=86_400, ge=0)
    live_max_request_bytes: int = Field(default=40_000_000, gt=0)
    live_max_trace_bytes: int = Field(default=64_000_000, gt=0)
    live_max_trace_spans: int = Field(default=50_000, gt=0)
    live_max_waiting_bytes: int = Field(default=1_000_000_000, gt=0)
    live_max_project_waiting_bytes: int = Field(default=250_000_000, gt=0)
    live_max_delay_seconds: int = Field(default=300, ge=1)
    replay_key: SecretStr = SecretStr("")
    replay_hosts: str = ""
    replay_callables: str = ""
    replay_commands: str = ""
    replay_handlers: str = ""
    replay_folders: str = ""
    replay_least_isolation: Literal["namespaces", "landlock_seccomp", "none"] = (
        "landlock_seccomp"
    )
    replay_prices: str = ""
    replay_stub_url: str = ""
    replay_max_runs: int = Field(default=1_000, ge=1)
    replay_max_calls_per_day: int = Field(default=10_000, ge=0)
    replay_max_money_per_day: float = Field(default=0, ge=0)


env = from_environment(Environment)


def _database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise ImproperlyConfigured(
            "DATABASE_URL is no address of PostgreSQL: it reads "
            "postgresql://user:password@host:5432/database."
        )
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", "") or unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5, **query},
    }


_embedded_database, _embedded_redis = embedded_urls(env.data_dir)
DATA_DIR = env.data_dir
_lasting_key = lasting_key(env.secret_key.get_secret_value(), env.data_dir)
SECRET_KEY_IS_LASTING = bool(_lasting_key)
# Commands that serve nobody (check, makemigrations) may run without a lasting one; the
# web server, the worker and beat ask `require_lasting_key` first.
SECRET_KEY = _lasting_key or secrets.token_urlsafe(48)
DEBUG = env.debug
ALLOWED_HOSTS = listed(env.allowed_hosts)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "csp",
    "rest_framework",
    "apps.accounts",
    "apps.traces",
    "apps.agents",
    "apps.screening",
    "apps.scoring",
    "apps.replays",
    "apps.live",
    "apps.verdicts",
    "apps.review",
    "apps.reports",
    "apps.pipeline",
    "apps.web",
    "apps.api",
    "evalsite",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "apps.web.middleware.RefuseOversizedUploads",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.web.middleware.SpeakInSentences",
]

ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.web.context.navigation",
            ],
            "builtins": ["apps.web.templatetags.evidence"],
        },
    },
]

DATABASES = {"default": _database(env.database_url or _embedded_database)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": DATA_DIR / "uploads"},
    },
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        ),
    },
}

# Raw uploads lie here, content-addressed; temporary files beside them so that taking
# one over is a rename.
UPLOADS_DIR = DATA_DIR / "uploads"
FILE_UPLOAD_HANDLERS = ["apps.traces.storage.HashingUploadHandler"]
FILE_UPLOAD_PERMISSIONS = 0o600
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024**2
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
DATA_UPLOAD_MAX_NUMBER_FILES = 100

MAX_UPLOAD_BYTES = env.max_upload_bytes
MAX_UNPACKED_BYTES = env.max_unpacked_bytes
MAX_STRUCTURE_BYTES = env.max_structure_bytes
RAW_BYTES: str = env.raw_bytes
RAW_KEYS: list[bytes] = raw_keys(
    env.raw_key.get_secret_value(), is_needed=RAW_BYTES == "encrypted"
)
LEASE_SECONDS = env.lease_seconds
CLAIM_SECONDS = env.claim_seconds

LIVE_SETTLE_SECONDS = env.live_settle_seconds
LIVE_QUIET_SECONDS = env.live_quiet_seconds
LIVE_LATE_SECONDS = env.live_late_seconds
LIVE_MAX_REQUEST_BYTES = env.live_max_request_bytes
LIVE_MAX_TRACE_BYTES = env.live_max_trace_bytes
LIVE_MAX_TRACE_SPANS = env.live_max_trace_spans
LIVE_MAX_WAITING_BYTES = env.live_max_waiting_bytes
LIVE_MAX_PROJECT_WAITING_BYTES = env.live_max_project_waiting_bytes
LIVE_MAX_DELAY_SECONDS = env.live_max_delay_seconds

# Only the operator may widen what a replay can reach; a project chooses among these.
REPLAY_KEYS: list[bytes] = replay_keys(env.replay_key.get_secret_value(), env.data_dir)
REPLAY_HOSTS = listed(env.replay_hosts)
# The agents of the demo are ours and reach nothing; they run in the sandbox as all do.
SAMPLE_AGENTS = ["desk_agents:Memory", "desk_agents:escalation"]
REPLAY_CALLABLES = [*SAMPLE_AGENTS, *listed(env.replay_callables)]
REPLAY_COMMANDS = listed(env.replay_commands)
REPLAY_HANDLERS = listed(env.replay_handlers)
REPLAY_FOLDERS = [
    str(BASE_DIR / "apps" / "pipeline" / "demo" / "alone"),
    *listed(env.replay_folders),
]
REPLAY_LEAST_ISOLATION: str = env.replay_least_isolation
REPLAY_PRICES = env.replay_prices
REPLAY_STUB_URL = env.replay_stub_url.rstrip("/")
REPLAY_MAX_RUNS = env.replay_max_runs
REPLAY_MAX_CALLS_PER_DAY = env.replay_max_calls_per_day
REPLAY_MAX_MONEY_PER_DAY = env.replay_max_money_per_day

REDIS_URL = env.redis_url or _embedded_redis

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = env.https
CSRF_COOKIE_SECURE = env.https
CSRF_FAILURE_VIEW = "apps.web.views.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if env.https else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.https else None
X_FRAME_OPTIONS = "DENY"

# Plotly writes style attributes and an empty style element (the hash of the empty
# string); nothing else inline is allowed.
_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-elem": [SELF, _EMPTY_STYLE],
        "style-src-attr": ["'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.api.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "rest_framework.parsers.JSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "UNAUTHENTICATED_USER": None,
    # There is one way to answer; `format` in an address names the format of a file.
    "URL_FORMAT_OVERRIDE": None,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.request": {"level": "ERROR"},
        # They tell each address and header of what a target is asked.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
    },
}
