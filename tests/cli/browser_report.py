"""The page of `staircase-fast report` in a real browser: `make test-browser`.

Reports are made by the command line and opened in headless Chromium, which is controlled through a pipe (the DevTools
protocol).  Chromium is installed from Debian's packages if it is missing; CHROMIUM names another browser.
"""

import base64
import contextlib
import fcntl
import io
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib import image
from pyarrow import parquet

from staircase_fast.cli import demo

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds for an answer
QUIET = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
HOSTILE = "<script>document.title='executed'</script>"


def main() -> None:
    browser = find_browser()
    pictures = Path("build/browser")
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = make_reports(Path(folder))
        with Browser(browser, Path(folder) / "profile") as tab:
            check_that_errors_are_seen(tab, Path(folder))
            for name, (page, told) in pages.items():
                check_page(tab, page, told, pictures / name)
                print(f"{name}: picture, numbers and log are correct")
    print(f"opened with {browser}; screenshots are in {pictures}")


def find_browser() -> str:
    """The path of Chromium, which is installed if necessary and possible."""
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else BROWSERS
    for attempt in range(2):
        for name in names:
            if found := shutil.which(name):
                return found
        if attempt == 0 and shutil.which("apt-get"):
            install()
    sys.exit("test-browser needs Chromium: install it, or set CHROMIUM to the path of a browser of its kind")


def install() -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if sudo and (
        not shutil.which("sudo") or subprocess.run([*sudo, "true"], capture_output=True, check=False).returncode
    ):
        return
    print("installing chromium from the packages of this system", flush=True)
    quiet = {"env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run([*sudo, "apt-get", "update", "-qq"], check=False, **quiet)
    packages = ["chromium", "fonts-dejavu-core"]
    subprocess.run(
        [*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], check=False, **quiet
    )


def make_reports(folder: Path) -> dict[str, tuple[Path, dict]]:
    """Pages and their `--json` results by name: a model of other rows, a model with groups, hostile names."""
    scores, labels = demo.overconfident_model(60_000)
    groups = np.where(np.arange(len(scores)) % 3, "<b>north</b>", "south & west")
    table = pa.table({"score": scores, "label": labels, "group": groups, HOSTILE: scores})
    hostile = folder / "<img src=x onerror=alert(1)> & co.parquet"
    for path, part in ((folder / "past.parquet", table[:30_000]), (folder / "new.parquet", table[30_000:])):
        parquet.write_table(part, path)
    parquet.write_table(table[:500], hostile)
    command("fit", folder / "past.parquet", "--model", folder / "model.json")
    command("fit", folder / "past.parquet", "--model", folder / "map", "--group", "group")
    found = {}
    for name, words in {
        "report": (folder / "new.parquet", "--model", folder / "model.json"),
        "groups": (folder / "new.parquet", "--model", folder / "map", "--group", "group"),
        "hostile": (hostile, "--score", HOSTILE, "--loss", "log"),
    }.items():
        page = folder / f"{name}.html"
        found[name] = page, command("report", *words, "--output", page)
    return found


def command(*words) -> dict:
    # -P: the package that was imported above, not the one in the working directory
    words = [sys.executable, "-P", "-m", "staircase_fast", *map(str, words), "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


class Browser:
    """A tab in a new browser without a profile and without network."""

    def __init__(self, path: str, profile: Path) -> None:
        # the browser reads from 3 and writes to 4, so our ends must have other numbers
        (theirs_in, self.commands), (self.answers, theirs_out) = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]

        def connect() -> None:
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        arguments = [path, *QUIET, *root, f"--user-data-dir={profile}", "--window-size=1100,1400", "about:blank"]
        self.process = subprocess.Popen(
            arguments, preexec_fn=connect, pass_fds=(3, 4),  # noqa: PLW1509  (there are no threads)
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (theirs_in, theirs_out, *theirs):
            os.close(end)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(BrokenPipeError):
            self("Browser.close")
        self.process.wait(PATIENCE)

    def __call__(self, method: str, **parameters):
        """Send a command and return the answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda given: given.get("id") == self.number)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted):
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self.rest:
                text, _, self.rest = self.rest.partition(b"\0")
                given = json.loads(text)
                self.events.append(given)
                if wanted(given):
                    return given
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                sys.exit(f"the browser has not answered for {PATIENCE} seconds")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                sys.exit("the browser has exited")
            self.rest += piece

    def open(self, page: Path, **media) -> list[str]:
        """Open a page and return the errors in the browser's log."""
        self("Emulation.setEmulatedMedia", **media)
        self.events.clear()
        self("Page.navigate", url=page.resolve().as_uri())
        if not any(given.get("method") == "Page.loadEventFired" for given in self.events):
            self._until(lambda given: given.get("method") == "Page.loadEventFired")
        self.value("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")  # wait for late errors
        return [line for given in self.events for line in complaint(given)]

    def value(self, expression: str):
        found = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            sys.exit(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def screenshot(self, path: Path, clip: dict | None = None) -> np.ndarray:
        more = {"clip": clip | {"scale": 1}} if clip else {}
        given = self("Page.captureScreenshot", captureBeyondViewport=True, **more)["data"]
        path.write_bytes(base64.b64decode(given))
        return image.imread(io.BytesIO(path.read_bytes()))


def complaint(event: dict) -> list[str]:
    method, told = event.get("method"), event.get("params", {})
    if method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
        return [told["entry"]["text"]]
    if method == "Runtime.exceptionThrown" or (method == "Runtime.consoleAPICalled" and told["type"] == "error"):
        return [str(told)]
    if method == "Network.requestWillBeSent" and not told["request"]["url"].startswith(("file:", "data:")):
        return [f"asked for {told['request']['url']}"]
    return []


def check_that_errors_are_seen(tab: Browser, folder: Path) -> None:
    """Check that errors in a page are detected."""
    page = folder / "wrong.html"
    page.write_text("<!DOCTYPE html><img src='missing.png'><script>nothing_of_this_name()</script>")
    found = tab.open(page)
    assert any("nothing_of_this_name" in line for line in found), found
    assert any("ERR_FILE_NOT_FOUND" in line for line in found), found


def check_page(tab: Browser, page: Path, told: dict, picture: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        wrong = tab.open(page, features=media)
        assert not wrong, wrong
        check_numbers(tab, told)
        tab.screenshot(picture.with_name(f"{picture.name}-{scheme}.png"), size_of(tab, "document.documentElement"))
        seen[scheme] = drawn(tab, picture.with_name(f"{picture.name}-{scheme}-picture.png"))
    assert seen["light"].mean() > 0.7, "the picture must be light on a light page"
    assert seen["dark"].mean() < 0.4, "the picture must be dark on a dark page"
    assert not tab.open(page, media="print")
    assert tab.value("[...document.querySelectorAll('div')].every(box => box.scrollHeight <= box.clientHeight + 2)")
    assert tab.value("document.title").startswith("Calibration of "), tab.value("document.title")
    assert tab.value("document.scripts.length + document.querySelectorAll('b, [onerror]').length") == 0


def check_numbers(tab: Browser, told: dict) -> None:
    cells = tab.value("[...document.querySelectorAll('td[data-value]')].map(c => [c.id, c.dataset.value, c.innerText])")
    wanted = {f"{which}-{name}": value for which in ("before", "after") for name, value in told[which].items()}
    assert {name: float(value) for name, value, _ in cells} == {name: float(v) for name, v in wanted.items()}
    for name, value, shown in cells:
        assert np.isclose(float(shown), float(value), rtol=1e-5, atol=0), (name, value, shown)
    steps = tab.value("document.querySelectorAll('#steps tbody tr').length")
    assert steps == min(told["steps"], 500), steps


def size_of(tab: Browser, what: str) -> dict:
    return tab.value(f"(({{x, y, width, height}}) => ({{x, y, width, height}}))({what}.getBoundingClientRect())")


def drawn(tab: Browser, path: Path) -> np.ndarray:
    """The pixels of the picture, which must exist and not be blank."""
    assert tab.value("document.images.length") == 2 + tab.value("document.querySelectorAll('#segments').length")
    assert tab.value("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    assert tab.value("[...document.images].every(image => image.alt.length > 30)")
    assert tab.value("[...document.images].every(image => image.parentNode.scrollHeight <= image.height + 20)")
    tab.value("window.scrollTo(0, 0)")
    box = size_of(tab, "document.images[0]")
    assert box["width"] > 300, box
    assert box["height"] > 150, box
    pixels = tab.screenshot(path, box)[..., :3]
    blank = np.median(pixels.reshape(-1, 3), axis=0)
    share = float((np.abs(pixels - blank).max(axis=2) > 0.1).mean())
    assert 0.01 < share < 0.9, f"{share:.2%} of the picture is drawn"
    return pixels


if __name__ == "__main__":
    main()
