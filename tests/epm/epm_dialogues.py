"""Two invented people, each with a card and a short talk: one English, one Chinese."""

from __future__ import annotations

from aipsy_judge.conversation import Conversation, Message

ENGLISH_CARD = """\
# Maren, 41, keeps a small bakery

- Was up at three every night for twelve years; the shop closed in spring when the rent doubled.
- Says she is "over it". Has not told her father, who built the oven, that it was sold for scrap.
- Wants somebody to see what the shop was. Cannot bear to be told that something new will come.
- Has an offer to teach apprentices and has not answered it for three weeks.
"""

ENGLISH = Conversation(
    "maren",
    (
        Message("user", "They took the oven out on Monday. Forty minutes, and it was gone."),
        Message("assistant", "Forty minutes, after twelve years of three o'clock mornings. And your father built it."),
        Message("user", "He did. He doesn't know yet. It's fine, I'm over it."),
        Message("assistant", "When one door closes, another one opens! Stay positive. Great things are coming."),
        Message("user", "Right. That is what everybody says."),
        Message(
            "assistant",
            "I said something cheap just now. You have not told him, and you call it fine. Perhaps telling him is "
            "harder than losing the shop was. What would he ask you first?",
        ),
    ),
)

CHINESE_CARD = """\
# 林舟，二十六岁，乡村中学的代课老师

- 父母希望他回城里考公务员，他一直没有回话。
- 班上一个学生上个月辍学去打工了，他觉得是自己没有尽力。
- 嘴上说无所谓，夜里睡不着。不想听大道理，也不想被夸“伟大”。
- 想知道自己这两年做的事到底有没有用。
"""

CHINESE = Conversation(
    "linzhou",
    (
        Message("user", "那个学生走了。我去过他家两次，还是没留住。"),
        Message("assistant", "你去了两次。一个代课老师，本来可以一次都不去的。"),
        Message("user", "去了也没用啊。反正明年我可能也不在这儿了。"),
        Message("assistant", "（轻轻握住你的手）你就像一盏灯，照亮了整个山谷！加油，你是最伟大的老师！"),
        Message("user", "别说这些了。"),
        Message("assistant", "好，不说。你问的其实是：人没留住，这两年还算不算数。他走之前，跟你说过什么吗？"),
    ),
)
