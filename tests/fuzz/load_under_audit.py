"""Load files in a process that notes everything it should not do: ``load_under_audit.py FOLDER``.

The files ``seed-*.epi`` are loaded first, so that all that a good model needs is imported. From then on an audit hook
watches. Prints one JSON object: the outcome for each ``mutant-*.epi``, and what the hook saw.
With ``--planted`` a pickle is loaded under the hook instead, which it has to notice.
"""

import codecs
import faulthandler
import json
import pickle
import sys
import warnings
from pathlib import Path

FORBIDDEN = (
    "code.__new__",
    "compile",
    "ctypes.",
    "exec",
    "ftplib.",
    "http.",
    "import",
    "marshal.",
    "mmap.",
    "os.",
    "pickle.",
    "pty.",
    "shutil.",
    "socket.",
    "subprocess.",
    "sys.set",
    "tempfile.",
    "urllib.",
    "webbrowser.",
)


class Guard:
    """An audit hook that writes down what it sees. It does not raise: the loader would report that as a bad file."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.active = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple) -> None:
        if not self.active:
            return
        if event == "open":
            path, mode, _ = arguments
            if mode != "r" or not str(path).startswith(self.folder):
                self.seen.append(f"open {path} {mode}")
        elif event.startswith(FORBIDDEN):
            self.seen.append(f"{event} {str(arguments)[:100]}")


def main(folder: Path, planted: bool) -> None:
    """Load, and report."""
    from epicycle.exceptions import ModelFormatError
    from epicycle.io import describe, load

    warnings.simplefilter("ignore")
    codecs.lookup("cp437")  # for names in foreign zips
    faulthandler.enable()
    for path in sorted(folder.glob("seed-*.epi")):
        load(path)
        describe(path)
    guard = Guard(folder)
    sys.addaudithook(guard)
    outcomes = {}
    for path in sorted(folder.glob("mutant-*.epi")):
        guard.active = True
        try:
            load(path)
            outcome = "loaded"
        except ModelFormatError:
            outcome = "refused"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        try:
            describe(path)
        except ModelFormatError:
            pass
        except BaseException as error:
            outcome = f"describe: {type(error).__name__}: {error}"
        guard.active = False
        outcomes[path.name] = outcome
    if planted:
        guard.active = True
        pickle.loads(b"cos\ngetcwd\n(tR.")
        guard.active = False
    print(json.dumps({"outcomes": outcomes, "seen": guard.seen}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--planted" in sys.argv)
