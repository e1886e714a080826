"""The one exception that the command line turns into a message without a stack trace."""


class ClusterError(Exception):
    """Something a person can act on: the message says what happened and where to look."""
