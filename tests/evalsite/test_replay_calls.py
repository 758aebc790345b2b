"""Wrong calls of `manage.py replay`, and targets that cannot be: sentences, and code 2."""

from __future__ import annotations

import json

import pytest

from tests.evalsite.replaying import Folder, replay


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


WRONG = [
    ((), "Say how the agent is run"),
    (("--callable", "a:b"), "--cases FILE"),
    (("--target", "nowhere.yaml"), "nowhere.yaml cannot be opened"),
    (("--freeze", "x.jsonl"), "--agent NAME"),
    (("--target", "{t}", "--allow", "everything"), "no host with a port"),
    (("--target", "{t}", "--cases", "{bad}"), "line 1: "),
    (("--target", "{t}", "--cases", "{c}", "--regime", "7"), "--regime 7"),
    (("--target", "{t}", "--cases", "{c}", "--repeats", "0"), "from 1 to 100"),
    (("--target", "{t}", "--cases", "{c}", "--max-money", "1"), "--prices"),
    (("--target", "{t}", "--cases", "{c}", "--contracts", "{bad}"), "bad.jsonl"),
    (("--target", "{t}", "--cases", "{c}", "--memory", "{bad}"), "bad.jsonl"),
    (("--target", "{t}", "--cases", "{c}", "--recorded", "-"), "reads its files twice"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_wrong_call_is_said_in_a_sentence(folder, words, said):
    settings = {"base_url": "https://models.example/v1", "model": "small"}
    (folder.path / "bad.jsonl").write_text('{"agent": 7}\n')
    names = {
        "t": folder.target("openai", settings),
        "c": folder.cases,
        "bad": folder.path / "bad.jsonl",
    }
    code, printed, error = replay(*[word.format(**names) for word in words])
    assert (code, printed) == (2, "")
    assert said in error
    assert "Traceback" not in error


BAD_TARGETS = [
    ({"kind": "magic"}, "magic"),
    ({"kind": "recorded"}, "runs nothing"),
    ({"kind": "openai", "secret": "x"}, "does not belong into a file"),
    ({"kind": "openai", "settings": {}}, "base_url"),
    ({"kind": "openai", "secret_env": "NOT_SET_AT_ALL"}, "base_url"),
    ({"kind": "http", "settings": {"url": "http://10.0.0.1/"}}, "--allow HOST:PORT"),
    ({"kind": "callable", "settings": {"callable": "os:system"}}, "--callable"),
    ({"kind": "command", "settings": {"command": "/bin/sh"}}, "--command"),
    ({"kind": "openai", "colour": "red"}, "colour"),
    (
        {
            "kind": "http",
            "settings": {"url": "https://agents.example/"},
            "stubs": {"default": {"kind": "handler", "handler": "os:getcwd"}},
        },
        "--handler",
    ),
]


@pytest.mark.parametrize(("value", "said"), BAD_TARGETS)
def test_a_target_that_cannot_be_is_refused_with_the_name_of_its_file(
    folder, value, said
):
    file = folder.path / "odd.yaml"
    file.write_text(json.dumps(value))
    code, _, error = replay("--target", file, "--cases", folder.cases)
    assert code == 2
    assert "odd.yaml: " in error
    assert said in error
