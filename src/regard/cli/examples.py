"""The example at the end of each verb's help."""


def example(*commands: str) -> str:
    """Return an epilog that shows commands, one a line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"[cyan]{command}[/cyan]" for command in commands)])
