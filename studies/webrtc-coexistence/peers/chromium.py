#!/usr/bin/env python3
"""A call between two headless Chromiums: one end of it.

    chromium.py receive PORT
    chromium.py send ADDRESS PORT SECONDS [--size 640x360] [--fps 60] [--most BITS_PER_SECOND] [--codec VP8]
                                          [--film FILE] [--no-parity]

FILE (.y4m) is what the camera sees, over and over, instead of Chromium's test picture. Without parity only lost packets
that are asked for are sent again; Chromium offers packets of parity (red and ulpfec), too.

The ends agree over a TCP connection at PORT; the video goes its own way. Every half second each prints what
getStats says, an array of JSON on one line. Needs Debian's package chromium, and nothing else.
"""

import argparse
import json
import os
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-fake-ui-for-media-stream", "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter",
    "--autoplay-policy=no-user-gesture-required", "--remote-debugging-pipe",
]

SEND = """(async () => {
    const stream = await navigator.mediaDevices.getUserMedia(
        {video: {width: WIDTH, height: HEIGHT, frameRate: FPS}, audio: false});
    window.pc = new RTCPeerConnection();
    const sender = pc.addTrack(stream.getVideoTracks()[0], stream);
    const codecs = RTCRtpSender.getCapabilities('video').codecs;
    const first = codecs.filter(c => c.mimeType === 'video/CODEC');
    const others = codecs.filter(c => PARITY ? !first.includes(c) : c.mimeType === 'video/rtx');
    pc.getTransceivers()[0].setCodecPreferences(first.concat(others));
    const gathered = new Promise(done => pc.onicecandidate = event => event.candidate || done());
    await pc.setLocalDescription(await pc.createOffer());
    await gathered;
    const parameters = sender.getParameters();
    if (MOST) parameters.encodings[0].maxBitrate = MOST;
    await sender.setParameters(parameters);
    return pc.localDescription.sdp;
})()"""

RECEIVE = """(async sdp => {
    window.pc = new RTCPeerConnection();
    pc.ontrack = event => {
        const video = document.createElement('video');
        video.autoplay = video.muted = true;
        video.srcObject = new MediaStream([event.track]);
        document.body.append(video);
    };
    const gathered = new Promise(done => pc.onicecandidate = event => event.candidate || done());
    await pc.setRemoteDescription({type: 'offer', sdp});
    await pc.setLocalDescription(await pc.createAnswer());
    await gathered;
    return pc.localDescription.sdp;
})"""

STATS = "(async () => JSON.stringify([...(await pc.getStats()).values()]))()"


class Browser:
    """A Chromium with one page, told what to do over a pipe (the DevTools protocol)."""

    def __init__(self, fps: int, film: str | None) -> None:
        self.folder = tempfile.mkdtemp()
        page = os.path.join(self.folder, "page.html")
        with open(page, "w", encoding="utf-8") as file:
            file.write("<!doctype html><title>call</title><body></body>")
        read_end, self.write = os.pipe()
        self.read, write_end = os.pipe()
        for end in (read_end, write_end):
            os.set_inheritable(end, True)
        flags = FLAGS + [f"--use-fake-device-for-media-stream=fps={fps}", f"--user-data-dir={self.folder}"]
        if film:
            flags.append(f"--use-file-for-fake-video-capture={os.path.abspath(film)}")
        if os.geteuid() == 0:
            # Chromium refuses to run as root otherwise.
            flags.append("--no-sandbox")
        # It reads from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{read_end} 4>&{write_end}'
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", shell, "sh", program(), *flags, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(read_end, write_end))
        os.close(read_end)
        os.close(write_end)
        self.rest, self.number, self.page = b"", 0, None
        target = self.ask("Target.createTarget", url=f"file://{page}")["targetId"]
        self.page = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        while self.evaluate("location.protocol + document.readyState") != "file:complete":
            time.sleep(0.05)

    def ask(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.page:
            message["sessionId"] = self.page
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.read, 1 << 16)
                if not more:
                    raise SystemExit("chromium has ended")
                self.rest += more
            one, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, script: str) -> object:
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"the page: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")


def program() -> str:
    for name in PROGRAMS:
        for folder in os.environ.get("PATH", "").split(":"):
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK):
                return path
    raise SystemExit("there is no chromium; sudo apt install chromium")


def report(browser: Browser, until: float) -> None:
    while time.monotonic() < until:
        print(browser.evaluate(STATS), flush=True)
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("where", nargs="+", metavar="ADDRESS PORT SECONDS")
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--fps", type=int, default=60)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--codec", default="VP8")
    parser.add_argument("--film")
    parser.add_argument("--no-parity", action="store_true")
    own = parser.parse_args()
    browser = Browser(own.fps, own.film)
    if own.role == "receive":
        server = socket.create_server(("", int(own.where[0])))
        other, _ = server.accept()
        with other, other.makefile("rw", encoding="utf-8") as talk:
            offer = json.loads(talk.readline())
            answer = browser.evaluate(f"{RECEIVE}({json.dumps(offer)})")
            talk.write(json.dumps(answer) + "\n")
            talk.flush()
        report(browser, float("inf"))
        return
    address, port, seconds = own.where
    until = time.monotonic() + float(seconds)
    width, height = own.size.split("x")
    script = SEND.replace("WIDTH", width).replace("HEIGHT", height).replace("FPS", str(own.fps))
    script = script.replace("MOST", str(own.most)).replace("CODEC", own.codec)
    offer = browser.evaluate(script.replace("PARITY", "false" if own.no_parity else "true"))
    with socket.create_connection((address, int(port))) as other, other.makefile("rw", encoding="utf-8") as talk:
        talk.write(json.dumps(offer) + "\n")
        talk.flush()
        answer = json.loads(talk.readline())
    browser.evaluate(f"pc.setRemoteDescription({{type: 'answer', sdp: {json.dumps(answer)}}})")
    report(browser, until)


main()
