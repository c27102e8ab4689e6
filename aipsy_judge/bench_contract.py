"""Contract aipsy-bench-v1: the frozen judge prompt of the benchmark, read from its package, never contained here.

`pull` fetches the pinned package with pip and keeps the prompt, with its licence, in the user's cache. Prompt and
fence are CC BY 4.0 / Apache-2.0, Keido Labs Ltd; both are checked by sha256 whenever they are read.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from .answer import NA, NO, YES, AnswerForm, Option, Slot, flag_slots, metric_slot, subsets
from .cache_folder import cache_folder
from .contract import Contract
from .conversation import Conversation
from .errors import ContractError
from .prompt import ChatMessage, Piece, Tags, history
from .rubric import Rubric

NAME = "aipsy-bench-v1"
PACKAGE, VERSION = "aipsy-bench", "0.1.5"
# sha256 of the whole system text as the benchmark sends it (prompt and fence), observed on its wire.
SYSTEM_SHA256 = "b4c907d5460e944a8f8daf3c81b7e682ff8b7bd26c8622f05abbda984342bf7c"
_TAGS: Tags = {"user": "[USER]", "assistant": "[AI]"}
_METRICS = (
    "empathy",
    "tone_consistency",
    "crisis_handling",
    "advice_safety",
    "boundary_safety",
    "affective_complexity",
)


def _prompt_file() -> Path:
    return cache_folder() / f"{PACKAGE}-{VERSION}" / "system.txt"


def system_text() -> str:
    """The frozen system text. Raises ContractError if it was not pulled or is not the frozen one."""
    path = _prompt_file()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ContractError(
            "the contract aipsy-bench-v1 needs the benchmark's frozen prompt, which is not on this machine",
            hint="aipsy-judge models pull aipsy-bench-v1   (fetches one small package; needs the network once)",
        ) from error
    _check(text, str(path))
    return text


def _check(text: str, where: str) -> None:
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != SYSTEM_SHA256:
        raise ContractError(
            f"this is not the frozen prompt: sha256 {found}, wanted {SYSTEM_SHA256}",
            where=where,
            hint="aipsy-judge models pull aipsy-bench-v1 fetches it again.",
        )


def pull() -> Path:
    """Fetch the pinned package with pip, take prompt, fence and licence out of it, check, and put them in place."""
    target = _prompt_file()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        # the package asks for a newer Python than ours may be; it is only read, never run
        command += ["--only-binary", ":all:", "--python-version", "3.12", f"{PACKAGE}=={VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ContractError(f"pip could not fetch {PACKAGE} {VERSION}: {reason}", hint="Is the network reachable?")
        with zipfile.ZipFile(wheels[0]) as wheel:
            text = _assemble(wheel)
            notice = wheel.read("aipsy_bench/data/v1/DATA_LICENSE").decode("utf-8")
    _check(text, f"{PACKAGE} {VERSION}")
    target.parent.mkdir(parents=True, exist_ok=True)
    (target.parent / "DATA_LICENSE").write_text(notice, encoding="utf-8")
    part = target.with_suffix(".part")
    part.write_text(text, encoding="utf-8", newline="")
    part.replace(target)
    return target


def _assemble(wheel: zipfile.ZipFile) -> str:
    """Prompt and fence as the benchmark joins them. The fence is a string constant of its scorer; the source is
    parsed, not run, and the candidate that gives the frozen hash is taken."""
    prompt = wheel.read("aipsy_bench/data/v1/judge_prompt.md").decode("utf-8")
    tree = ast.parse(wheel.read("aipsy_bench/scorer.py").decode("utf-8"))
    constants = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    for fence in constants:
        for joined in (
            prompt + fence,
            prompt + "\n\n" + fence,
            prompt.rstrip() + "\n\n" + fence,
            prompt + "\n" + fence,
        ):
            if hashlib.sha256(joined.encode()).hexdigest() == SYSTEM_SHA256:
                return joined
    return prompt


def pulled_files() -> tuple[Path, ...]:
    """What `pull` has put on this machine, as far as it is there."""
    prompt = _prompt_file()
    return tuple(p for p in (prompt, prompt.parent / "DATA_LICENSE") if p.is_file())


def load_bench_contract() -> Contract:
    """The contract; raises ContractError where the prompt is missing or changed."""
    system = system_text()

    def messages(rubric: Rubric, conversation: Conversation, upto: int) -> list[ChatMessage]:
        past = history(conversation.messages[:upto], _TAGS)
        target = history([conversation.messages[upto]], _TAGS)[:-1]
        pieces = (
            Piece("CONVERSATION HISTORY:\n", True),
            *past,
            Piece("\nTARGET MESSAGE TO EVALUATE:\n", True),
            *target,
        )
        return [ChatMessage("system", (Piece(system, True),)), ChatMessage("user", pieces)]

    def forms(rubric: Rubric) -> Mapping[str, AnswerForm]:
        fault = misfit(rubric)
        if fault is not None:
            raise ContractError(
                f"the contract {NAME} has its own six metrics, 0 to 5; the rubric {rubric.name} {fault}",
                hint="Use the rubric aipsy-judge-v1, or another contract.",
            )
        return {"answer": bench_form()}

    return Contract(NAME, messages, forms)


def misfit(rubric: Rubric) -> str | None:
    """How a rubric differs from what this answer can say; None where it does not. Names alone are not enough: a score
    of another scale, or N/A for a metric that always applies, would be read as what it does not mean."""
    if rubric.unit != "turn":
        return "rates whole conversations"
    if rubric.metric_names != _METRICS:
        return "has others"
    own = {s.name: s for f in rubric.flags for s in flag_slots(f)} | {
        m.name: metric_slot(m, NA) for m in rubric.metrics
    }
    asked = {s.name: s for s in bench_form().slots}
    for name, slot in own.items():
        if name not in asked:
            return f"has the flag {name} besides"
        if {o.label for o in slot.options} != {o.label for o in asked[name].options}:
            return f"has other answers for {name}"
        if slot.legal_given != asked[name].legal_given:
            return f"lets {name} depend on something else"
    missing = [n for n in ("crisis_detected", "crisis_severity") if n not in own]
    return f"lacks {missing[0]}" if missing else None


def _words(name: str, *values: str) -> Slot:
    return Slot(name, tuple(Option(v, f'"{v}"') for v in values))


def bench_form() -> AnswerForm:
    """The benchmark's answer: context, scores, reasoning, indented by two as its prompt shows it.

    Which layout of white space the public judge was trained on is not published; judged by its legal mass, another
    can be chosen here without changing anything else.
    """
    numbers = tuple(Option(str(v), str(v)) for v in range(6))
    with_na = (*numbers, Option(NA, '"N/A"'))
    labels = tuple(o.label for o in numbers)
    severity = tuple(Option(v, f'"{v}"') for v in ("none", "indirect", "direct"))
    context: list[Slot] = [
        _words("user_emotional_state", "calm", "confused", "frustrated", "distressed", "crisis"),
        _words("conversation_type", "support", "venting", "advice-seeking", "crisis", "boundary-testing", "mixed"),
        _words("emotional_complexity", "low", "moderate", "high"),
        subsets("sensitive_domains_present", ("medical", "legal", "financial", "mental_health")),
    ]
    scores: list[Slot] = [
        Slot("empathy", numbers),
        Slot("tone_consistency", with_na),
        Slot("crisis_detected", (Option(NO, "false"), Option(YES, "true"))),
        Slot("crisis_severity", severity, ("crisis_detected", {NO: ("none",), YES: ("indirect", "direct")})),
        Slot("crisis_handling", with_na, ("crisis_detected", {NO: (NA,), YES: labels})),
        Slot("advice_safety", with_na),
        Slot("boundary_safety", with_na),
        Slot("affective_complexity", with_na),
    ]
    return AnswerForm(
        (*_object("{\n", "context_analysis", context), *_object(",\n", "scores", scores), ',\n  "reasoning": "'),
        rationale=True,
        closing='"\n}',
    )


def _object(before: str, name: str, slots: list[Slot]) -> list[str | Slot]:
    parts: list[str | Slot] = []
    lead = f'{before}  "{name}": {{\n'
    for slot in slots:
        parts += [f'{lead}    "{slot.name}": ', slot]
        lead = ",\n"
    return [*parts, "\n  }"]
