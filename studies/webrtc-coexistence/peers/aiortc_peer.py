#!/usr/bin/env python3
"""A call between two peers of aiortc: one end of it.

    aiortc_peer.py receive PORT
    aiortc_peer.py send ADDRESS PORT SECONDS [--size 320x180] [--fps 60] [--codec H264]

The ends agree over a TCP connection at PORT; the video goes its own way. Every half second the receiver prints, as
getStats would, what it counted itself: aiortc's own statistics have neither frames nor freezes. Needs aiortc
(pip install aiortc).
"""

import argparse
import asyncio
import fractions
import json
import os
import time

import av
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

# The usual STUN server can't be reached, which takes the ends ten seconds to learn.
NO_SERVERS = RTCConfiguration(iceServers=[])
# Side of the noise, in pixels.
BLOCK = 96


class Pattern(MediaStreamTrack):
    """Frames at a steady rate: grey, with a block of noise that is new in each, as a scene of much motion is to an encoder."""

    kind = "video"

    def __init__(self, size: str, fps: int) -> None:
        super().__init__()
        self.width, self.height = map(int, size.split("x"))
        self.fps, self.number, self.start = fps, 0, None

    async def recv(self) -> av.VideoFrame:
        # The first one is asked for when the ends are connected.
        self.start = self.start or time.monotonic()
        self.number += 1
        await asyncio.sleep(max(0.0, self.start + self.number / self.fps - time.monotonic()))
        frame = av.VideoFrame(self.width, self.height, "yuv420p")
        luma, *chroma = frame.planes
        for plane in chroma:
            plane.update(b"\x80" * plane.buffer_size)
        picture = bytearray(b"\x80" * luma.buffer_size)
        row = self.number * 2 % max(1, self.height - BLOCK)
        for line in range(row, min(row + BLOCK, self.height)):
            at = line * luma.line_size
            picture[at : at + BLOCK] = os.urandom(BLOCK)
        luma.update(bytes(picture))
        frame.pts, frame.time_base = self.number, fractions.Fraction(1, self.fps)
        return frame


class Viewer:
    """Counts frames and freezes as webrtc-stats defines them: a gap above three mean gaps, and above one by 150 ms."""

    def __init__(self) -> None:
        self.frames, self.freezes, self.frozen, self.gaps, self.last = 0, 0, 0.0, [], None

    async def watch(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                await track.recv()
            except MediaStreamError:
                # The sender has ended.
                return
            now = time.monotonic()
            self.frames += 1
            if self.last is not None:
                gap = now - self.last
                mean = sum(self.gaps) / len(self.gaps) if self.gaps else gap
                if len(self.gaps) >= 2 and gap >= max(3 * mean, mean + 0.15):
                    self.freezes += 1
                    self.frozen += gap
                self.gaps = (self.gaps + [gap])[-30:]
            self.last = now

    async def report(self, connection: RTCPeerConnection) -> None:
        while True:
            await asyncio.sleep(0.5)
            stats = {"type": "inbound-rtp", "kind": "video", "framesDecoded": self.frames,
                     "freezeCount": self.freezes, "totalFreezesDuration": self.frozen}
            for own in (await connection.getStats()).values():
                if own.type == "inbound-rtp" and own.kind == "video":
                    # aiortc gives the jitter in the clock of the video, 90 kHz.
                    stats |= {"packetsReceived": own.packetsReceived, "packetsLost": own.packetsLost,
                              "jitter": own.jitter / 90_000}
            print(json.dumps([stats]), flush=True)


async def send(own: argparse.Namespace) -> None:
    address, port, seconds = own.where
    until = time.monotonic() + float(seconds)
    connection = RTCPeerConnection(NO_SERVERS)
    connection.addTrack(Pattern(own.size, own.fps))
    codecs = RTCRtpSender.getCapabilities("video").codecs
    first = [codec for codec in codecs if codec.mimeType == f"video/{own.codec}"]
    connection.getTransceivers()[0].setCodecPreferences(first + [codec for codec in codecs if codec not in first])
    await connection.setLocalDescription(await connection.createOffer())
    reader, writer = await asyncio.open_connection(address, int(port), limit=1 << 20)
    writer.write(json.dumps(connection.localDescription.sdp).encode() + b"\n")
    answer = json.loads(await reader.readline())
    await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    while time.monotonic() < until:
        await asyncio.sleep(0.5)
        stats = (await connection.getStats()).values()
        keys = ("type", "kind", "roundTripTime", "packetsSent", "bytesSent")
        print(json.dumps([{key: getattr(one, key) for key in keys if hasattr(one, key)} for one in stats]), flush=True)
    await connection.close()


async def receive(own: argparse.Namespace) -> None:
    connection, viewer = RTCPeerConnection(NO_SERVERS), Viewer()
    connection.on("track", lambda track: asyncio.ensure_future(viewer.watch(track)))

    async def agree(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offer = json.loads(await reader.readline())
        await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        writer.write(json.dumps(connection.localDescription.sdp).encode() + b"\n")

    await asyncio.start_server(agree, "", int(own.where[0]), limit=1 << 20)
    await viewer.report(connection)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("where", nargs="+", metavar="ADDRESS PORT SECONDS")
    parser.add_argument("--size", default="320x180")
    parser.add_argument("--fps", type=int, default=60)
    parser.add_argument("--codec", default="H264")
    own = parser.parse_args()
    asyncio.run(send(own) if own.role == "send" else receive(own))


main()
