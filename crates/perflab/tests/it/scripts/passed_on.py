"""Leaves the foreground group, so that the terminal interrupts it no more, and says whether someone
passes a SIGINT on to it within a moment."""

import os
import signal

os.setpgid(0, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", flush=True)
passed_on = signal.sigtimedwait([signal.SIGINT], 0.5)
print("passed on:", passed_on is not None, flush=True)
