"""What all commands share: exit codes, errors, output, arguments; nothing here is expensive to import."""
