"""Check what a package index shows of a wheel and of an sdist: `make release-check` runs it.

python tests/docs/check_description.py wheel sdist
"""

from __future__ import annotations

import email
import sys
import tarfile
import tomllib
import zipfile
from html.parser import HTMLParser
from pathlib import Path

from readme_renderer import markdown

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """Collects the addresses of links and images."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def read_metadata(path: str) -> str:
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return wheel.read(name).decode()
    with tarfile.open(path) as sdist:
        (name,) = (name for name in sdist.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        return sdist.extractfile(name).read().decode()


def errors_in(path: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = email.message_from_string(read_metadata(path))
    if metadata["Description-Content-Type"] != "text/markdown":
        return [f"the description must be text/markdown; got {metadata['Description-Content-Type']}"]
    page = markdown.render(metadata.get_payload())
    if page is None:
        return ["the description cannot be rendered"]
    links = Links()
    links.feed(page)
    ours = [f"{project['urls']['Source']}/{kind}/v{project['version']}/" for kind in ("blob", "raw")]
    files = [link.removeprefix(start).partition("#")[0] for link in links.found for start in ours if start in link]
    errors = [f"relative link {link}" for link in links.found if not link.startswith(("https:", "#"))]
    errors += [f"link to {file}, which does not exist" for file in files if not (ROOT / file).is_file()]
    if len(files) < 10:
        errors.append(f"the README has more links than {files}")
    return errors


if __name__ == "__main__":
    bad = [f"{path}: {error}" for path in sys.argv[1:] for error in errors_in(path)]
    sys.exit("\n".join(bad) or None)
