"""Chat templates of weights: programs of strangers, parsed and run in a sandbox that can reach nothing.

A sandbox keeps a template from the machine, not from running without end or filling the memory. So a file that nobody
has published is tried first in a process with bounds (backends/trial.py), and what is rendered here is what was tried
there: messages enter as placeholders, of which a template can see neither number nor length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

LONGEST_BYTES = 2**18  # of a template; the longest published ones have 2^15
# Private-use characters around a message's number. Conversation text may hold them too: it is never searched for them.
OPEN, CLOSE = "\ue000", "\ue001"


def render(template: str, roles: Sequence[str], special: Mapping[str, str], *, asks: bool = True) -> str:
    """The template's text for messages of these roles, a placeholder for the content of each, thinking off; with
    `asks` up to where the model answers. Raises whatever the template does."""
    rows = [{"role": role, "content": f"{OPEN}{n}{CLOSE}"} for n, role in enumerate(roles)]
    compiled = compile_template(template)
    return str(compiled.render(messages=rows, add_generation_prompt=asks, enable_thinking=False, **special))


@lru_cache(maxsize=8)
def compile_template(template: str) -> Template:
    """Parse it. Raises jinja2.TemplateError, or RecursionError where it is nested beyond reason."""
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> Any:
        raise TemplateError(message)

    # trim_blocks and lstrip_blocks are how transformers and llama.cpp render these templates.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = raise_exception
    del environment.filters["random"]  # the same messages give the same prompt
    return environment.from_string(template)


def template_fault(template: Any) -> str | None:
    """What is wrong with a template by its text, in words; None where nothing is, or where there is none."""
    if template is None:
        return None
    if not isinstance(template, str):
        return "the chat template is no text"
    if not template.strip():
        return "the chat template is empty"
    if len(template.encode()) > LONGEST_BYTES:
        return f"the chat template has {len(template.encode())} bytes; up to {LONGEST_BYTES} are read"
    from jinja2 import TemplateError

    try:
        compile_template(template)
    except TemplateError as error:
        return f"the chat template cannot be parsed: {error}"
    except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError) as error:
        return f"the chat template cannot be parsed: {type(error).__name__}"
    return None
