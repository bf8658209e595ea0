"""``percolab`` and ``python -m percolab`` are the command line."""

import signal


def run() -> None:
    """Run the command line, which Ctrl-C ends without a traceback also while it is imported."""
    own = signal.getsignal(signal.SIGINT)
    if own is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from percolab.cli import main

    signal.signal(signal.SIGINT, own)
    main()


if __name__ == "__main__":
    run()
