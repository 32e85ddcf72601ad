"""Binding a process, its threads and what it started, while it starts more of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import plait
from plait.engines.affinity import usable
from plait.machine_cores import core_ids
from tests.engines.bound import CAN_BIND, cpus_of

pytestmark = CAN_BIND
SOURCE = str(Path(plait.__file__).parent.parent)
# Threads and children that start threads and children, until they are told to end.
BREEDER = """
import os, sys, threading
from plait.engines.affinity import bind

def breed():
    while not over.is_set():
        thread = threading.Thread(target=over.wait, args=(0.001,))
        thread.start()
        thread.join()

over = threading.Event()
breeders = [threading.Thread(target=breed) for _ in range(4)]
resting = [threading.Thread(target=over.wait) for _ in range(4)]
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        os.fork()
        sys.stdin.read()
        os._exit(0)
    children.append(child)
for thread in breeders + resting:
    thread.start()
bind([int(sys.argv[1])])
print(os.getpid(), flush=True)
sys.stdin.read()
over.set()
"""


def test_all_threads_and_children_are_bound_and_so_is_whatever_they_start() -> None:
    cpu = core_ids()[-1]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", BREEDER, str(cpu)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": SOURCE},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        assert cpus_of(process.pid) == {cpu}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_what_the_system_lets_us_use_is_counted() -> None:
    assert usable(otherwise=0) == len(os.sched_getaffinity(0))
