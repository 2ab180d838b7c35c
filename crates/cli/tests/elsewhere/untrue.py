"""A host that is not as it should be: it passes on what is said to a copy of this program and by it, but for one thing.

untrue.py WHAT COMMAND...: 'deaf' hears of the end of a run after 5 s, 'endless' never says that it is done, and always something else, 'dies' does so
instead of saying it.
"""
import os
import struct
import subprocess
import sys
import threading
import time

what, *command = sys.argv[1:]
agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out = sys.stdout.buffer


def frame(stream):
    """The next message with its length, or nothing at the end."""
    head = stream.read(4)
    return head + stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""


def give():
    while message := frame(sys.stdin.buffer):
        if what == "deaf" and message[4:].startswith(b'{"End"'):
            time.sleep(5)
        agent.stdin.write(message)
        agent.stdin.flush()
    agent.stdin.close()
    if what == "endless":
        os._exit(1)


threading.Thread(target=give, daemon=True).start()
out.write(agent.stdout.read(16))
out.flush()
while message := frame(agent.stdout):
    if message[4:] == b'"Done"' and what == "dies":
        os._exit(1)
    while message[4:] == b'"Done"' and what == "endless":
        samples = b'{"Notices":[]}'
        out.write(struct.pack(">I", len(samples)) + samples)
        out.flush()
        time.sleep(0.02)
    out.write(message)
    out.flush()
