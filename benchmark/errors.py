"""What a user did wrong, as opposed to what went wrong in the program."""


class UserError(Exception):
    """Bad input. The message names what is wrong, the value, and what would be right; no traceback is shown."""


class GraphError(UserError, ValueError):
    """A graph, or a set of node pairs, that does not keep the contract of `Graph`."""


class UnknownNameError(UserError, LookupError):
    """A plugin, suite or parameter of that name does not exist."""
