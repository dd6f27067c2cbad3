"""A headless Chromium that is told what to do through a pipe (the DevTools protocol).

No package is needed beside Debian's chromium. Every message of the console, every
exception and every request is kept, so that a test can say there were none.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds, for a machine with much to do


def find():
    """The browser's path, or None."""
    return os.environ.get("LULL_CHROMIUM") or shutil.which("chromium")


class Browser:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="lull-browser-")
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()
        arguments = [path, "--headless", "--remote-debugging-pipe", "--disable-gpu",
                     "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb", f"--user-data-dir={self.profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")

        def pipes():  # the browser reads descriptor 3 and writes 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=pipes, pass_fds=(3, 4))
        os.close(to_browser)
        os.close(from_browser)
        self.rest = b""
        self.number = 0
        self.session = None
        self.requests, self.complaints = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.writer)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.reader)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.reader, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get(
                "description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])
        elif (method == "Runtime.consoleAPICalled"
              and parameters["type"] in ("error", "warning", "assert")):
            self.complaints.append(str(parameters["args"]))

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, url):
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + PATIENCE
        while self.run("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} does not load")
            time.sleep(0.05)

    def run(self, script):
        """The value of an expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def size(self, width, height, ratio=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=ratio, mobile=mobile)
        self.frame()

    def dark(self, dark):
        value = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": value}])
        self.frame()

    def mouse(self, kind, x, y, clicks=1):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                  buttons=0 if kind == "mouseReleased" else 1, clickCount=clicks)

    def click(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def drag(self, begin, end):
        self.mouse("mousePressed", *begin)
        for i in range(1, 6):
            self.mouse("mouseMoved", begin[0] + (end[0] - begin[0]) * i / 5,
                       begin[1] + (end[1] - begin[1]) * i / 5)
        self.mouse("mouseReleased", *end)

    def picture(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", format="png",
                         captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
