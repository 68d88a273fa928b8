#!/usr/bin/env python3
"""Opens the HTML report in headless Chromium, at the width of a phone and of a desk, light and dark.

    tools/page.py [--tokload PATH] [--keep DIRECTORY]

Makes runs of several kinds, simulated ones and an interrupted one against the mock server, and a page and a card of each,
and checks in the browser: nothing is said on the console, nothing is wider than the window, the pointer on a chart shows
values, a line can be switched off, a table sorts both ways, and no request leaves the page. Screenshots, light and dark, and
the card 600 px wide are kept in DIRECTORY, to be looked at. Needs Python 3.10 and Chromium (Debian: chromium); pages are
served on loopback. Ends with 1 if a check fails.
"""

import argparse
import functools
import http.server
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Widths with the heights of their screenshots, which hold the longest page.
HEIGHTS = {360: 9000, 1440: 6000}
# What each kind adds to the options that all have.
SIMULATED = {
    "single": ["-c", "8", "--num-prompts", "300"],
    "sweep": ["-c", "1,2,4,8,16,24,32", "--duration", "20"],
    "sweep64": ["-c", ",".join(map(str, range(1, 65))), "--num-prompts", "128"],
    "capacity": ["--find-capacity", "--num-prompts", "100"],
    "one": ["-c", "1", "--num-prompts", "1"],
    "failures": ["-c", "2,4", "--num-prompts", "40", "--request-timeout-seconds", "0.02"],
    "open": ["--request-rate", "2,4,8", "--duration", "20", "--num-runs", "2"],
}
OPTIONS = ["--random-output-len", "32", "--goodput", "ttft:500", "--seed", "1", "--force"]

# Runs in a page around the report, which has the width to be tried; what it finds stands in the title.
FRAME = """<!doctype html><meta charset="utf-8"><style>body {{ margin: 0 }} iframe {{ border: 0 }}</style>
<iframe id="f" src="{page}" width="{width}" height="{height}"></iframe>
<script>
const faults = [];
const say = (text) => faults.push(text);
const frame = document.getElementById("f");
frame.contentWindow.addEventListener("error", (event) => say("error: " + event.message));
frame.addEventListener("load", () => {{
  const page = frame.contentDocument;
  const window = frame.contentWindow;
  const wide = page.documentElement.scrollWidth;
  if (wide > {width}) say(`the page is ${{wide}} px wide`);
  for (const element of page.querySelectorAll("body *")) {{
    if (element.closest(".scroll, svg")) continue;
    const right = element.getBoundingClientRect().right;
    if (right > {width} + 1) say(`${{element.tagName}} ends at ${{right}}`);
  }}
  if (window.performance.getEntriesByType("resource").length) say("the page has loaded something");
  const shown = (svg) => window.getComputedStyle(svg).display !== "none";
  let charts = 0;
  for (const figure of page.querySelectorAll("figure[data-chart]")) {{
    const pictures = [...figure.querySelectorAll("svg")].filter(shown);
    if (pictures.length !== 1) {{ say(figure.id + ": " + pictures.length + " pictures"); continue; }}
    const svg = pictures[0];
    const data = JSON.parse(figure.querySelector("script").textContent);
    const size = svg.classList.contains("wide") ? 0 : 1;
    const letters = svg.querySelector("text");
    const height = letters.getBoundingClientRect().height;
    if (height < 9) say(figure.id + ": text is " + height + " px high");
    const line = data.lines.find((line) => line.points.length);
    if (!line) continue;
    charts += 1;
    const point = line.points[0];
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const at = {{ clientX: box.left + point[size][0] * scale, clientY: box.top + point[size][1] * scale, bubbles: true }};
    svg.dispatchEvent(new window.PointerEvent("pointermove", at));
    const hint = figure.querySelector(".hint");
    if (hint.hidden || !hint.textContent.includes(point[3])) say(figure.id + ": no hint of " + point[3]);
    const edge = hint.getBoundingClientRect();
    if (edge.left < 0 || edge.right > {width}) say(figure.id + ": the hint leaves the page");
    svg.dispatchEvent(new window.PointerEvent("pointerleave", at));
    if (!hint.hidden) say(figure.id + ": the hint stays");
    const button = figure.querySelector(".names button");
    if (!button) continue;
    const layer = svg.querySelector("g[data-line]");
    button.click();
    if (shown(layer) || button.getAttribute("aria-pressed") !== "false") say(figure.id + ": a line stays");
    button.click();
    if (!shown(layer)) say(figure.id + ": a line does not come back");
  }}
  const table = page.querySelector("table");
  if (table && table.tBodies[0].rows.length > 1) {{
    const first = () => [...table.tBodies[0].rows].map((row) => row.cells[1].textContent);
    const head = table.querySelectorAll("thead tr:last-child th button")[1];
    const sorted = (texts, up) => texts.every((text, i) => !i || (up ? +texts[i - 1] <= +text : +texts[i - 1] >= +text));
    head.click();
    if (!sorted(first(), true)) say("a table does not sort: " + first());
    head.click();
    if (!sorted(first(), false)) say("a table does not sort back: " + first());
  }}
  document.title = faults.length ? "FAULTS " + faults.join("; ") : "GOOD " + charts;
}});
</script>
"""


def browser(profile, *arguments):
    command = [
        shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("chromium is missing: apt install chromium"),
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
        "--enable-logging=stderr", f"--user-data-dir={profile}", *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def interrupted(tokload, folder):
    """A run against the mock server that is ended in its second level."""
    server = subprocess.Popen([tokload, "mock-server", "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
    try:
        url = re.search(r"http://[0-9.:]+", server.stderr.readline()).group()
        run = subprocess.Popen([tokload, "run", "--base-url", url, "-c", "2,4", "--duration", "4", *OPTIONS,
                                "--output-file", "interrupted.json"], cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(7)
        run.send_signal(signal.SIGINT)
        run.wait(60)
    finally:
        server.terminate()
        server.wait(10)


def made(tokload, folder):
    """Makes the runs; the names of all of them."""
    def say(*words):
        subprocess.run([tokload, *words], cwd=folder, capture_output=True, timeout=300, check=False)

    for kind, load in SIMULATED.items():
        say("simulate", *load, *OPTIONS, "--output-file", f"{kind}.json")
    for share in ("1/2", "2/2"):
        say("simulate", "-c", "2,4,8", "--num-prompts", "100", "--share", share, *OPTIONS, "--output-file", "part.json")
    say("merge", "part.share-1-of-2.json", "part.share-2-of-2.json", "--output-file", "merged.json", "--force")
    interrupted(tokload, folder)
    return [*SIMULATED, "merged", "interrupted"]


def shoot(root, name, picture, width, height, flags):
    """A screenshot of a page. Windows have a least width, so that the page stands in a frame."""
    frame = picture.with_suffix(".frame.html")
    frame.write_text(f'<body style="margin:0"><iframe src="{name}" width="{width}" height="{height}" style="border:0"></iframe>')
    with tempfile.TemporaryDirectory() as profile:
        browser(profile, f"--window-size={max(width, 500)},{height}", f"--screenshot={picture}", *flags,
                f"{root}/{frame.name}")
    frame.unlink()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokload", default="target/release/tokload")
    parser.add_argument("--keep")
    options = parser.parse_args()
    tokload = str(pathlib.Path(options.tokload).resolve())
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(options.keep or place)
        folder.mkdir(parents=True, exist_ok=True)
        kinds = made(tokload, folder)
        for kind in kinds:
            page = [tokload, "report", f"{kind}.json", "--output", f"{kind}.html"]
            subprocess.run(page, cwd=folder, timeout=120, check=True)
            card = [tokload, "share", f"{kind}.json"]
            subprocess.run(card, cwd=folder, capture_output=True, timeout=120, check=True)
        two = [tokload, "report", "sweep.json", "one.json", "--output", "overlay.html"]
        subprocess.run(two, cwd=folder, timeout=120, check=True)
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        for kind in [*kinds, "overlay"]:
            for width in HEIGHTS:
                frame = folder / f"{kind}-{width}.frame.html"
                frame.write_text(FRAME.format(page=f"{kind}.html", width=width, height=1200))
                with tempfile.TemporaryDirectory() as profile:
                    seen = browser(profile, f"--window-size={max(width, 500)},1300", "--virtual-time-budget=5000",
                                   "--dump-dom", f"{root}/{frame.name}")
                title = re.search(r"<title>(.*?)</title>", seen.stdout, re.S)
                said = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
                verdict = title.group(1) if title else "no answer"
                good = verdict.startswith("GOOD") and not said
                faults += not good
                print(f"{kind:10} {width:5} px  {verdict}{'  ' + ' | '.join(said) if said else ''}")
                frame.unlink()
                if options.keep:
                    for scheme, flags in (("light", []), ("dark", ["--force-dark-mode"])):
                        shoot(root, f"{kind}.html", folder / f"{kind}-{width}-{scheme}.png", width, HEIGHTS[width], flags)
            if options.keep and kind != "overlay":
                page = folder / f"{kind}-card.html"
                page.write_text(f'<body style="margin:0"><img src="{kind}-card.png" width="600">')
                shoot(root, page.name, folder / f"{kind}-card-600.png", 600, 320, [])
                page.unlink()
        server.shutdown()
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
