"""A program: loads each file that it is given as a trial does, and says what became of it before the next.

The last line without an end is the file that ended the process.
"""

from __future__ import annotations

import sys
from pathlib import Path

from aipsy_judge.backends.trial import _bound_memory, _try
from aipsy_judge.errors import AipsyJudgeError

if __name__ == "__main__":
    _bound_memory(2**30)
    base = Path(sys.argv[1]) if sys.argv[1] != "-" else None
    for line in sys.stdin:
        path = Path(line.strip())
        print(path.name, end=" ", flush=True)
        try:
            if base is None:
                _try(path, None)
            else:
                _try(base, path)
            print("loaded", flush=True)
        except AipsyJudgeError as error:
            print("refused:", error.message.replace("\n", " ")[:120], flush=True)
