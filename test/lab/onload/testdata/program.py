# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
"""What containers and their peers run in the lab: each argument is KIND:ADDRESS:PORT, or KIND:ADDRESS:PORT:COUNT.

udp, tcp        answer what comes, for ever
ask-udp, ask-tcp  send COUNT messages, wait for each answer, and say how many came
connect         connect by TCP, send one message a second, for ever
"""

import socket
import sys
import threading
import time


def say(*words):
    print(*words, flush=True)


def udp(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(address)
    say("ready")
    while True:
        text, peer = s.recvfrom(2048)
        s.sendto(text, peer)


def answer(connection):
    try:
        while True:
            text = connection.recv(2048)
            if not text:
                break
            connection.sendall(text)
    except OSError as e:
        say("ended", e)
    connection.close()


def tcp(address):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(address)
    s.listen(16)
    say("ready")
    while True:
        threading.Thread(target=answer, args=(s.accept()[0],), daemon=True).start()


def ask(s, count, name):
    s.settimeout(10)
    answered = 0
    for i in range(count):
        try:
            s.send(b"%d" % i)
            if s.recv(2048) == b"%d" % i:
                answered += 1
        except OSError:
            pass
    say(name, answered, "of", count)


def ask_udp(address, count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(address)
    ask(s, count, "UDP")


def ask_tcp(address, count):
    s = socket.create_connection(address, timeout=30)
    ask(s, count, "TCP")
    s.close()


def connect(address):
    s = socket.create_connection(address, timeout=30)
    say("ready")
    while True:
        s.sendall(b"x")
        s.recv(2048)
        time.sleep(1)


def run(task):
    kind, host, port, *rest = task.split(":")
    try:
        globals()[kind.replace("-", "_")]((host, int(port)), *map(int, rest))
    except OSError as e:
        say("failed", kind, e)
        time.sleep(3600 if "ask" not in kind else 0)


tasks = [threading.Thread(target=run, args=(task,)) for task in sys.argv[1:]]
for thread in tasks:
    thread.start()
for thread in tasks:
    thread.join()
