"""Install a wheel into an empty virtual environment, away from the sources, and run the tour of README.md with it.

python tools/check_wheel.py dist/epicycle-*.whl
"""

import argparse
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the wheel to check")
    wheel: Path = parser.parse_args().wheel.resolve(strict=True)
    libraries = [
        file for file in zipfile.ZipFile(wheel).namelist() if re.fullmatch(r"epicycle/_native\..*(so|pyd)", file)
    ]
    if "abi3" in wheel.name and "cpython" in "".join(libraries):
        parser.error(f"{wheel.name} promises every later Python, but holds {libraries[0]}, which loads in one of them")
    with tempfile.TemporaryDirectory(prefix="epicycle-wheel-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
        # pandas and pyarrow are what the tour reads and writes tables with.
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", wheel, "pandas"], check=True)
        tour = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
        for code in tour:
            subprocess.run([scripts / "python", "-I", "-W", "error", "-c", code], cwd=folder, check=True)
        subprocess.run([scripts / "epicycle", "methods"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    print(f"{wheel.name}: installed into an empty environment; the tour of README.md runs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
