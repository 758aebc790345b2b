"""What names of tools say about what the tools do."""

from __future__ import annotations

import pytest

from apps.engine.bodies.effects import (
    Effect,
    effect_of,
    ends_a_task,
    is_reading_action,
    is_write,
    moves_on_each_call,
    own_name,
    words_of,
)


@pytest.mark.parametrize(
    "name",
    [
        "create_order", "updateReservation", "SendEmail", "book_reservation",
        "cancel_pending_order", "mcp__github__create_issue", "gmail.send_message",
        "functions.delete_file", "slack_post_message", "Edit", "str_replace_editor",
        "exchange_delivered_order_items", "return_delivered_order_items", "pay",
        "modify_user_address", "apply_patch", "HTTPPost", "write_email", "transfer_funds",
    ],
)  # fmt: skip
def test_names_with_these_verbs_write(name):
    assert effect_of(name) is Effect.WRITES


@pytest.mark.parametrize(
    "name",
    [
        "get_order", "listBooks", "search_direct_flight", "Read", "mcp__db__query_orders",
        "find_user_id_by_name_zip", "calculate", "think", "check_update", "Grep",
        "get_or_create_user", "read_message", "fetchPost", "web_search", "view_set",
    ],
)  # fmt: skip
def test_these_read_and_a_reading_verb_in_front_wins(name):
    assert effect_of(name) is Effect.READS


@pytest.mark.parametrize(
    "name",
    [
        "bash", "python", "browser", "order_details", "book_info", "order_status", "zap",
        "TodoWrite", "update_plan", "transfer_to_human_agents", "transfer_to_billing",
        "handoff_to_agent", "submit", "mark_task_complete", "finish", "", "123", "order",
        "message", "exit_set", "计算",
    ],
)  # fmt: skip
def test_these_are_unknown(name):
    assert effect_of(name) is Effect.UNKNOWN
    assert not is_write(name)


@pytest.mark.parametrize(
    "name",
    [
        "make_payment", "makePayment", "process_payment", "execute_trade", "sell_stock",
        "wire_money", "open_ticket", "credit_account", "settle_invoice", "tweet",
        "initiate_payout", "increment_counter", "complete_order",
    ],
)  # fmt: skip
def test_verbs_of_anything_write_where_their_object_is_money_or_a_promise(name):
    assert effect_of(name) is Effect.WRITES


@pytest.mark.parametrize(
    "name",
    [
        "make_plan", "process_image", "execute", "open_file", "open_url", "run_tests",
        "run_sql", "start_server", "process_order_status", "request_info",
        "complete_task",
    ],
)  # fmt: skip
def test_verbs_of_anything_are_unknown_with_another_object(name):
    assert effect_of(name) is Effect.UNKNOWN


def test_names_that_a_project_adds_write_whatever_they_say():
    extra = frozenset({"zap", "get_money"})
    assert is_write("zap", extra)
    assert is_write("mcp__bank__get_money", extra)
    assert not is_write("get_order", extra)


def test_one_tool_with_many_actions_reads_where_its_action_does():
    assert is_reading_action({"command": "view", "path": "/a"})
    assert is_reading_action({"action": "listOrders"})
    assert not is_reading_action({"command": "create"})
    assert not is_reading_action({"command": 7})
    assert not is_reading_action("view")


def test_names_fall_into_words():
    assert words_of("mcp__mail__sendHTMLMail_now2") == ("send", "html", "mail", "now")
    assert own_name("a.b/c") == "c"
    assert own_name("__get") == "get"


def test_some_tools_are_made_to_be_called_again_and_some_end_a_task():
    assert moves_on_each_call("page_down")
    assert moves_on_each_call("browser_wait_for")
    assert not moves_on_each_call("get_order")
    assert ends_a_task("final_answer")
    assert not ends_a_task("complete_order")
