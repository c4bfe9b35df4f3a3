"""`horolog completion`: completion scripts for bash, zsh and fish, generated from the table of commands and their parsers.

Fixed words are in the script; for names of topics, groups, profiles and settings, and for times, it calls horolog with the
words so far (`completing`).

shtab (1.13, measured in 2026) writes scripts of the same size for the same shells and would save some 150 lines here. But it
needs every command under one parser; here a parser is made when its command is used, so that a start imports no
other. Joining them takes private parts of argparse, and each installation would carry a package for a script that is
printed once.
"""

import argparse
from typing import NamedTuple

from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.completing import kind_of
from horolog.commands.arguments import describe
from horolog.commands.console import Console
from horolog.commands.errors import CommandError
from horolog.commands.exit_codes import ExitCode

FILE_METAVARS = ("FILE", "DIR", "DATA_FOLDER", "PATH")
"""Arguments with these names are completed with file names."""


class Option(NamedTuple):
    names: tuple[str, ...]
    sentence: str
    takes_value: bool
    choices: tuple[str, ...]
    asks: bool = False
    """Whether horolog is called for its values."""


class Spec(NamedTuple):
    """The words that can follow others: `topics create`, say."""

    words: tuple[str, ...]
    sentence: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    """Possible arguments: names of actions, or choices."""
    takes_files: bool
    asks: bool = False
    """Whether horolog is called for the names of one of its arguments."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print a script that makes a shell complete commands, options and names.",
        "source <(horolog completion bash)                                # in ~/.bashrc",
        "horolog completion zsh > ~/.zfunc/_horolog                       # a folder of $fpath",
        "horolog completion fish > ~/.config/fish/completions/horolog.fish",
    )
    parser.add_argument("shell", choices=sorted(WRITERS), help="the shell")


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    console.print(WRITERS[arguments.shell](all_specs()).rstrip("\n"))
    return ExitCode.OK


def all_specs() -> list[Spec]:
    """Of every command and every action of one, in the order of the table."""
    from horolog.client.cli.main import parser_of

    top = Spec((), "", (), tuple(command.name for command in COMMANDS), takes_files=False)
    found = [top]
    for command in COMMANDS:
        try:
            found.extend(specs(parser_of(command), (command.name,), command.sentence))
        except CommandError:  # it needs packages that are missing: only its name can be completed
            found.append(Spec((command.name,), command.sentence, (), (), takes_files=False))
    return found


def specs(parser: argparse.ArgumentParser, words: tuple[str, ...], sentence: str) -> list[Spec]:
    """The specs of a parser and of its actions, if it has any."""
    options: list[Option] = []
    choices: list[str] = []
    below: list[Spec] = []
    takes_files = asks = False
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            sentences = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
            for name, child in action.choices.items():
                choices.append(name)
                below.extend(specs(child, (*words, name), sentences.get(name, "")))
        elif action.option_strings:
            options.append(_option(action))
        else:
            choices.extend(str(choice) for choice in action.choices or ())
            takes_files = takes_files or action.metavar in FILE_METAVARS
            asks = asks or bool(kind_of(action))
    return [Spec(words, sentence, tuple(options), tuple(choices), takes_files, asks), *below]


def _option(action: argparse.Action) -> Option:
    sentence = (action.help or "").replace("%%", "%")
    choices = tuple(str(choice) for choice in action.choices or ())
    takes_value = action.nargs != 0
    return Option(tuple(action.option_strings), sentence, takes_value, choices, takes_value and bool(kind_of(action)))


# Bash splits words at = and :, which times and settings contain; they are joined again, and the part before the last split is not
# part of what bash inserts.
BASH_HEAD = r"""# bash completion of horolog
_horolog() {
    local -a words=()
    local rest="$COMP_LINE" at word previous command="" options="" values="" files="" asks="" before
    for ((at = 0; at <= COMP_CWORD; at++)); do
        if ((at > 0)) && [[ "$rest" != [[:space:]]* ]]; then
            words[${#words[@]}-1]+="${COMP_WORDS[at]}"
        else
            words+=("${COMP_WORDS[at]}")
        fi
        rest="${rest#"${rest%%[![:space:]]*}"}"
        rest="${rest#"${COMP_WORDS[at]}"}"
    done
    word="${words[${#words[@]}-1]}" previous="${words[${#words[@]}-2]}"
    for ((at = 1; at < ${#words[@]} - 1; at++)); do
        [[ "${words[at]}" == -* ]] && continue
        case "$command ${words[at]}" in
"""
BASH_TAIL = r"""    esac
    COMPREPLY=()
    if [[ "$word" == -* && -n "$options" ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [[ -n "$asks" ]]; then
        mapfile -t COMPREPLY < <("${words[0]}" _complete "${words[@]:1}" 2>/dev/null)
        if [[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2>/dev/null; fi
        before="${word%"${word##*[:=]}"}"
        if [[ -n "$before" ]]; then COMPREPLY=("${COMPREPLY[@]#"$before"}"); fi
    elif [[ -n "$values" ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    fi
    if [[ ${#COMPREPLY[@]} == 0 && -n "$files" ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -o bashdefault -F _horolog horolog
"""


def bash(specs: list[Spec]) -> str:
    """One `case` over the words of the command, one over the option whose value is being typed."""
    lines = [f'            {_known_words(specs)}) command="$command ${{words[at]}}" ;;', "        esac", "    done"]
    lines.append('    case "$command" in')
    for spec in specs:
        names = " ".join(name for option in spec.options for name in option.names)
        head = " " + " ".join(spec.words) if spec.words else ""
        lines.append(
            f'        "{head}") options="{names}" values="{" ".join(spec.choices)}"'
            f' files="{"y" * spec.takes_files}" asks="{"y" * spec.asks}" ;;'
        )
    lines += ["    esac", '    case "$command $previous" in']
    for spec in specs:
        for option in spec.options:
            if option.takes_value:
                keys = "|".join(_quoted(" ".join(("", *spec.words, name))) for name in option.names)
                files = "" if option.asks or option.choices else "y"
                lines.append(
                    f'        {keys}) options="" files="{files}" values="{" ".join(option.choices)}"'
                    f' asks="{"y" * option.asks}" ;;'
                )
    return BASH_HEAD + "\n".join(lines) + "\n" + BASH_TAIL


def _known_words(specs: list[Spec]) -> str:
    """A pattern for the shell's `case`: every command, and every command with an action."""
    return "|".join(_quoted(" ".join(("", *spec.words))) for spec in specs if spec.words)


def _quoted(text: str) -> str:
    return f'"{text}"'


def zsh(specs: list[Spec]) -> str:
    """The words that may follow, each with its sentence, handed to `_describe`."""
    lines = [
        "#compdef horolog",
        "_horolog() {",
        '    local command="" word asks="" taken=""',
        '    for word in "${(@)words[2,CURRENT-1]}"; do',
        '        [[ "$word" == -* ]] && continue',
        '        case "$command $word" in',
        f'            {_known_words(specs)}) command="$command $word" ;;',
        "        esac",
        "    done",
        "    local -a values options",
        '    case "$command" in',
    ]
    sentences = {spec.words: spec.sentence for spec in specs}
    for spec in specs:
        head = " " + " ".join(spec.words) if spec.words else ""
        values = [_described(choice, sentences.get((*spec.words, choice), "")) for choice in spec.choices]
        options = [_described(name, option.sentence) for option in spec.options for name in option.names]
        lines += [
            f'        "{head}")',
            f"            values=({' '.join(values)}) asks={'y' * spec.asks}",
            f"            options=({' '.join(options)}) ;;",
        ]
    lines += ["    esac", '    case "$command ${words[CURRENT-1]}" in']
    for spec in specs:
        for option in spec.options:
            if option.takes_value:
                keys = "|".join(_quoted(" ".join(("", *spec.words, name))) for name in option.names)
                lines.append(f"        {keys}) taken=y values=({' '.join(option.choices)}) asks={'y' * option.asks} ;;")
    lines += [
        "    esac",
        '    if [[ -n "$asks" && ( -n "$taken" || "$PREFIX" != -* ) ]]; then',
        "        local -a asked",
        '        asked=("${(@f)$("${(Q)words[1]}" _complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")',
        '        compadd -S "" -- ${(M)asked:#*=}',
        "        compadd -- ${${asked:#*=}:#}",
        '    elif [[ "$PREFIX" == -* && -z "$taken" ]]; then',
        "        _describe option options",
        "    elif (( ${#values} )); then",
        "        _describe value values",
        "    else",
        "        _files",
        "    fi",
        "}",
        "compdef _horolog horolog",
    ]
    return "\n".join(lines) + "\n"


def _described(name: str, sentence: str) -> str:
    text = f"{name}:{sentence}" if sentence else name
    return "'" + text.replace("'", "'\\''") + "'"


def fish(specs: list[Spec]) -> str:
    """One `complete` line for every word and option, with its sentence."""
    lines = [
        "# fish completion of horolog",
        "function __horolog_ask",
        "    set -l words (commandline -opc) (commandline -ct)",
        "    command $words[1] _complete $words[2..-1] 2>/dev/null",
        "end",
        "complete -c horolog -f",
    ]
    sentences = {spec.words: spec.sentence for spec in specs}
    names = {spec.words[0]: spec for spec in specs if len(spec.words) == 1}
    actions = {
        name: [spec.words[1] for spec in specs if len(spec.words) == 2 and spec.words[0] == name] for name in names
    }
    for spec in specs:
        condition = _fish_condition(spec.words, actions)
        lines += [
            f"complete -c horolog -n '{condition}' -a {_fish(choice)} -d {_fish(sentences.get((*spec.words, choice), ''))}"
            for choice in spec.choices
        ]
        if spec.asks:
            lines.append(f"complete -c horolog -n '{condition}' -a '(__horolog_ask)'")
        if spec.takes_files:
            lines.append(f"complete -c horolog -n '{condition}' -F")
        lines += [f"complete -c horolog -n '{condition}' {_fish_option(option)}" for option in spec.options]
    return "\n".join(lines) + "\n"


def _fish_condition(words: tuple[str, ...], actions: dict[str, list[str]]) -> str:
    if not words:
        return "__fish_use_subcommand"
    seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in words).removeprefix("; and ")
    if len(words) == 1 and actions.get(words[0]):
        return f"{seen}; and not __fish_seen_subcommand_from {' '.join(actions[words[0]])}"
    return seen


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = " -r -F" if option.takes_value else ""
    if option.choices or option.asks:
        value = f" -x -a {_fish('(__horolog_ask)' if option.asks else ' '.join(option.choices))}"
    return f"{names}{value} -d {_fish(option.sentence)}"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS = {"bash": bash, "zsh": zsh, "fish": fish}
