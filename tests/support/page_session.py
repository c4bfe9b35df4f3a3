"""Runs the programs of a page one after the other in one interpreter, as a reader types them, and reports what each printed.

Its input is a JSON list of programs; its output a line of `MARK` before what each prints. A failure ends it.
"""

import json
import sys

MARK = "=== program "


def main() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for number, program in enumerate(json.load(sys.stdin)):
        print(f"{MARK}{number}", flush=True)
        exec(compile(program, f"block {number}", "exec"), names)  # a page's programs share their names
        sys.stdout.flush()


if __name__ == "__main__":
    main()
