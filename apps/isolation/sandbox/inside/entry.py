"""The script that a sandbox starts: loads its neighbours by path and nothing else."""

import importlib
import importlib.util
import sys

_NAME = "evalsite_inside"


def _main() -> None:
    folder = __file__.rpartition("/")[0]
    spec = importlib.util.spec_from_file_location(
        _NAME, f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None  # noqa: PT018, S101
    sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    warden = importlib.import_module(f"{_NAME}.warden")
    warden.main(control=int(sys.argv[1]), line=int(sys.argv[2]))


if __name__ == "__main__":
    _main()
