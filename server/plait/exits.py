"""The exit codes of `plait`: closed, documented by `plait --help`, the same for every command.

Does NOT know: which command ends with which.
"""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2  # argparse's own
EXIT_MODEL = 3
EXIT_PORT = 4
EXIT_INTERRUPTED = 130

EXIT_CODES = """exit codes:
  0    done, or the server was stopped in order
  1    a check failed (doctor, verify, bench), or the server failed
  2    wrong usage or configuration
  3    the model, or the engine that runs it, is not available
  4    the address cannot be listened on
  130  interrupted
"""
