"""Says how many times it was interrupted within a moment of the first."""

import os
import signal
import time

# A byte for every signal, also for one that comes while another is being handled.
reader, writer = os.pipe()
os.set_blocking(reader, True)
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
signal.signal(signal.SIGINT, lambda number, frame: None)
print("ready", flush=True)
os.read(reader, 1)
time.sleep(0.3)
os.write(writer, b".")
print("interrupts:", len(os.read(reader, 100)), flush=True)
