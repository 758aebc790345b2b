"""Who runs the embedded servers, and what that user can reach.

PostgreSQL refuses to run as root. As root we start both servers under an account that
exists already; none is created. Reachability is asked of the kernel by a child of that
account, because permission bits alone do not know of access control lists.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

from evalsite.processes import Account, CannotStart

_FIRST_BLOCKED = (
    'for p in "$@"; do test -x "$p" || { printf %s "$p"; exit 1; }; done; exit 0'
)


def server_account(preferred: str = "") -> Account | None:
    """Return the account that runs the servers; None means our own.

    Args:
        preferred: Name from EVALSITE_POSTGRES_USER, empty to choose `postgres` and
            then `nobody`. Other processes of that account could read the servers'
            files, so an account of its own is better than `nobody` on a shared host.

    Raises:
        CannotStart: We are root and no usable account exists.
    """
    if os.geteuid() != 0:
        return None
    for name in (preferred,) if preferred else ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    wanted = preferred or "postgres or nobody"
    raise CannotStart(
        f"PostgreSQL does not run as root, and there is no ordinary user {wanted} to "
        "run it. Set EVALSITE_POSTGRES_USER to one, or run Evalsite as an ordinary "
        "user."
    )


def blocking_folder(path: Path, account: Account) -> Path | None:
    """Return the first folder on the way to `path` that the account cannot pass.

    None when the account reaches `path`, which must be a folder or a program.
    """
    way = [*reversed(path.parents), path]
    answer = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", _FIRST_BLOCKED, "sh", *map(str, way)],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=False,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
    )
    return Path(answer.stdout) if answer.returncode else None
