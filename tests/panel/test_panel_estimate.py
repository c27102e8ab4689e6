"""The estimate, worked by hand; prices; who is kin to whom; names and folders."""

from collections import Counter
from pathlib import Path

import pytest

from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError
from aipsy_judge.panel import Member, Price, estimate, kin, load_prices, make_members
from aipsy_judge.panel.tokens import answer_tokens, prompt_tokens
from aipsy_judge.rubric import load_rubric

RUBRIC = load_rubric()
SERVED = Member("openai:m@https://judge.example/v1", "m")
HERE = Member("weights.gguf", "w")


def talk(*replies):
    messages = [m for r in replies for m in (Message("user", "hi"), Message("assistant", r))]
    return Conversation("c", tuple(messages))


def test_a_longer_turn_costs_its_bytes_over_four_more():
    short, long = (prompt_tokens(RUBRIC, FULL, talk("x" * n), 1, "never") for n in (4, 4004))
    assert long - short == 1000
    letters = prompt_tokens(RUBRIC, FULL, talk("я" * 4004), 1, "never")
    assert letters - short == 2001  # two bytes a letter


def test_the_whole_prompt_is_counted_rubric_and_schema_included():
    messages = FULL.messages(RUBRIC, talk("hello"), 1)
    bytes_ = [len(m.text.encode()) for m in messages]
    prose = sum(-(-b // 4) + 8 for b in bytes_)
    with_rationale = prompt_tokens(RUBRIC, FULL, talk("hello"), 1, "always")
    without = prompt_tokens(RUBRIC, FULL, talk("hello"), 1, "never")
    assert without > prose
    assert with_rationale > without


def test_a_rationale_adds_its_two_sentences_to_an_answer():
    assert answer_tokens(RUBRIC, "always") - answer_tokens(RUBRIC, "never") == 75


def test_an_estimate_adds_up_what_is_left_of_each_judge():
    conversation = talk("one", "two", " ")
    (first, second, _), whole = conversation.turns, conversation.content_hash
    tokens = [prompt_tokens(RUBRIC, FULL, conversation, t.index, "never") for t in (first, second)]
    fresh, rest, here = estimate(
        [SERVED, Member("openai:n@https://judge.example/v1", "n"), HERE],
        [conversation],
        RUBRIC,
        FULL,
        "never",
        {"openai:n@https://judge.example/v1": frozenset([(whole, 1)])},
    )
    assert (fresh.left, fresh.items, fresh.input_tokens) == (3, 2, sum(tokens))  # an empty turn is not asked about
    assert (rest.left, rest.items, rest.input_tokens) == (2, 1, tokens[1])
    assert fresh.output_tokens == 2 * answer_tokens(RUBRIC, "never")
    assert (here.items, here.input_tokens, here.cost(Price(input=1, output=1))) == (2, None, None)


def test_a_price_is_per_million_tokens_read_and_written():
    assert Price(input=0.25, output=2.0).of(4_000_000, 500_000) == 2.0


def write_prices(tmp_path, text):
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    return path


def test_a_price_is_found_by_the_judge_s_name_before_its_model_s(tmp_path):
    path = write_prices(
        tmp_path,
        "currency: USD\njudges:\n"
        "  m: {input: 1, output: 1}\n"
        "  openai:m@https://judge.example/v1: {input: 2, output: 2}\n"
        "  stray: {input: 3, output: 3}\n",
    )
    prices = load_prices(path)
    assert prices.of(SERVED) == Price(input=2, output=2)
    assert prices.of(Member("openai:m@https://other.example/v1", "o")) == Price(input=1, output=1)
    assert prices.of(HERE) is None
    assert prices.unused((SERVED,)) == ["stray"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judges: {m: {input: 1, output: 1}}", "currency"),
        ("currency: USD\njudges: {m: {input: -1}}", "judges.m.output"),
        ("currency: USD\njudges: {m: {input: .nan, output: 1}}", "judges.m.input"),
        ("currency: USD\ncurrency: EUR\njudges: {}", "written twice"),
        ("currency: USD\njudges: {m: {input: 1, output: 1, per: 1000}}", "judges.m.per"),
        ("- 1", "not valid prices"),
    ],
)
def test_a_faulty_price_file_is_one_error_that_names_the_place(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        load_prices(write_prices(tmp_path, text))
    assert "prices.yaml" in str(caught.value)


def test_a_price_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        load_prices(tmp_path / "nowhere.yaml")


def test_kin_are_told_by_the_model_s_name_and_strangers_are_not():
    members = make_members(["openai:gpt-5.4-mini@https://x.example", "ollama:gemma3:4b", "fake", "my-judge.gguf"])
    bots = Counter({"gpt-4o": 2, "google/gemini-2.5-flash": 1, "coach-app": 5, None: 3})
    found = kin(members, bots)
    assert [(k.member.model, k.family, k.generators, k.conversations) for k in found] == [
        ("gpt-5.4-mini", "openai", {"gpt-4o": 2}, 11),
        ("gemma3:4b", "google", {"google/gemini-2.5-flash": 1}, 11),
    ]


def test_folders_are_plain_unlike_and_stay_with_their_judge():
    names = ["openai:a/b@https://h.example/v1", "openai:a:b@https://h.example/v1", "OPENAI:A-B@https://h.example/v1"]
    members = make_members(names)
    folders = [m.folder for m in members]
    assert folders[0] == "openai-a-b-h.example-v1"
    assert len({f.lower() for f in folders}) == 3
    assert all("/" not in f and ":" not in f and not f.startswith(".") for f in folders)
    assert make_members([names[2], "fake"], members)[0] == members[2]


@pytest.mark.parametrize("name", ["../../etc", "..", "/", "://", "a" * 300, "é"])
def test_no_name_leads_out_of_the_panel_s_folder(tmp_path, name):
    (member,) = make_members([name])
    assert (tmp_path / member.folder).resolve().parent == Path(tmp_path).resolve()
    assert 0 < len(member.folder) <= 80


def test_where_text_goes_is_told_by_the_address_alone():
    assert SERVED.host == "judge.example"
    assert Member("openai:m@http://127.0.0.1:8080/v1", "x").host is None
    assert Member("ollama:gemma3:4b", "x").host is None
    assert HERE.host is None
