"""Where an installation keeps its data, and which sockets belong to it.

Everything here is computed from the data folder alone, so that settings know the
addresses without starting anything. Folders are only ever created; nothing that was
there before has its owner or its permissions changed.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from evalsite.processes import Account, CannotStart
from evalsite.unprivileged import blocking_folder

PROJECT_DIR = Path(__file__).resolve().parent.parent
DATABASE_NAME = "evalsite"
DATABASE_ROLE = "evalsite"
# The address of a unix socket holds 108 bytes on Linux and 104 on macOS, with a NUL.
_LONGEST_SOCKET_PATH = 103
_POSTGRES_SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class Places:
    """The folders and files of one installation."""

    data_dir: Path

    @classmethod
    def at(cls, data_dir: Path | str) -> Places:
        """Return the places below a data folder, as an absolute path."""
        return cls(Path(os.path.abspath(Path(data_dir).expanduser())))  # noqa: PTH100

    @property
    def postgres(self) -> Path:
        """Data folder of PostgreSQL."""
        return self.data_dir / "postgres"

    @property
    def access(self) -> Path:
        """Folder of the two files that say who may connect to PostgreSQL."""
        return self.data_dir / "access"

    @property
    def valkey(self) -> Path:
        """Folder of Valkey's append-only file."""
        return self.data_dir / "valkey"

    @property
    def programs(self) -> Path:
        """Copies of server programs that the server's account could not reach."""
        return self.data_dir / "programs"

    @property
    def logs(self) -> Path:
        """Folder of one log per child."""
        return self.data_dir / "logs"

    @property
    def uploads(self) -> Path:
        """Folder of the raw uploads."""
        return self.data_dir / "uploads"

    @property
    def lock(self) -> Path:
        """File that the running supervisor holds locked."""
        return self.data_dir / "lock"

    @property
    def replay_key(self) -> Path:
        """The key that secrets of replay targets are sealed with."""
        return self.data_dir / "replay-key"

    @property
    def secret_key(self) -> Path:
        """File of the key that signs sessions and links."""
        return self.data_dir / "secret-key"

    @property
    def sockets(self) -> Path:
        """Private folder of both sockets; a short one when the data path is long."""
        beside = self.data_dir / "sockets"
        if len(os.fsencode(beside / _POSTGRES_SOCKET)) <= _LONGEST_SOCKET_PATH:
            return beside
        # Not the folder of TMPDIR or XDG_RUNTIME_DIR: those differ between two
        # terminals of one person, and every process must arrive at the same path.
        # The name can be guessed, so the folder's owner is checked before it is used.
        name = f"evalsite-{os.getuid()}-{_short_hash(self.data_dir)}"
        return Path("/tmp") / name  # noqa: S108

    @property
    def postgres_socket(self) -> Path:
        """Path of PostgreSQL's socket."""
        return self.sockets / _POSTGRES_SOCKET

    @property
    def valkey_socket(self) -> Path:
        """Path of Valkey's socket."""
        return self.sockets / "valkey.sock"

    def log(self, name: str) -> Path:
        """Return the log file of a child."""
        return self.logs / f"{name}.log"


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def default_data_dir() -> Path:
    """Return where data lies when EVALSITE_DATA_DIR is not set.

    An ordinary user keeps it in the checkout. For root it lies under /var/lib, because
    PostgreSQL must run as another user there, who often cannot enter root's checkout.
    """
    if os.geteuid() != 0:
        return PROJECT_DIR / ".evalsite"
    return Path("/var/lib/evalsite") / f"{PROJECT_DIR.name}-{_short_hash(PROJECT_DIR)}"


def embedded_urls(data_dir: Path) -> tuple[str, str]:
    """Return DATABASE_URL and REDIS_URL of the embedded servers; starts nothing.

    The second one is written as Celery reads it. redis-py wants the scheme `unix`
    instead: see `redis_client_url`.
    """
    places = Places.at(data_dir)
    folder = quote(str(places.sockets), safe="")
    database = f"postgresql://{DATABASE_ROLE}@/{DATABASE_NAME}?host={folder}"
    return database, f"redis+socket://{quote(str(places.valkey_socket))}"


def redis_client_url(redis_url: str) -> str:
    """Return a REDIS_URL as redis-py's `from_url` reads it."""
    scheme, separator, rest = redis_url.partition("://")
    return f"unix://{rest}" if scheme == "redis+socket" else scheme + separator + rest


def prepare(places: Places, *, account: Account | None) -> None:
    """Create the folders of an installation; safe to run twice.

    Args:
        places: What to create.
        account: Who runs the servers, None when that is ourselves.

    Raises:
        CannotStart: A folder cannot be made, is not ours, or the account cannot enter.
    """
    try:
        # As root the servers' account passes through, but lists and reads nothing.
        passing = 0o700 if account is None else 0o711
        _make_folder(places.data_dir, passing)
        if account is not None:
            _refuse_unreachable(places.data_dir, account)
            _make_folder(places.programs, 0o755)
            _make_folder(places.access, 0o755)
        else:
            _make_folder(places.access, 0o700)
        _make_folder(places.logs, 0o700)
        _make_folder(places.uploads, 0o700)
        for private in (places.valkey, places.sockets):
            _make_folder(private, 0o700, account)
            _refuse_foreign(private, account)
        _make_key(places.secret_key, secrets.token_urlsafe(48))
        _make_key(
            places.replay_key,
            base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        )
    except OSError as error:
        raise CannotStart(
            f"The data folder {places.data_dir} cannot be used: {error}. "
            "Set EVALSITE_DATA_DIR to a folder that you may write to."
        ) from error


def _make_folder(path: Path, mode: int, account: Account | None = None) -> None:
    if path.is_dir():
        return
    if not path.parent.is_dir():
        _make_folder(path.parent, 0o711 if os.geteuid() == 0 else 0o755)
    path.mkdir(mode=0o700)
    # mkdir's mode is narrowed by the umask; this folder is ours, made one line above.
    path.chmod(mode)
    if account is not None:
        os.chown(path, account.uid, account.gid)


def _refuse_unreachable(data_dir: Path, account: Account) -> None:
    blocked = blocking_folder(data_dir, account)
    if blocked is None:
        return
    raise CannotStart(
        f"PostgreSQL does not run as root, and the user {account.name} who runs it "
        f"cannot pass through {blocked}. Nothing was opened up. Set EVALSITE_DATA_DIR "
        "to a folder outside of it, for instance /var/lib/evalsite/data, or run "
        "Evalsite as an ordinary user."
    )


def _refuse_foreign(path: Path, account: Account | None) -> None:
    owner = os.geteuid() if account is None else account.uid
    found = path.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if private and found.st_uid == owner:
        return
    raise CannotStart(
        f"{path} must be a folder that only user number {owner} can enter, and it is "
        "not. It was left as it is; move it away and start again."
    )


def _make_key(path: Path, key: str) -> None:
    if path.exists():
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(key + "\n")


@contextmanager
def held(places: Places) -> Iterator[None]:
    """Hold the data folder for this process; the kernel lets go when it dies.

    Raises:
        CannotStart: Another process holds it.
    """
    descriptor = os.open(places.lock, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotStart(
                f"Evalsite already runs on {places.data_dir} (process "
                f"{stream.read().strip() or 'unknown'}). Stop that one first, or set "
                "EVALSITE_DATA_DIR to another folder."
            ) from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield
