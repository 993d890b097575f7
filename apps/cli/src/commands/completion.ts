import { Argument, type Command, type Option } from '@commander-js/extra-typings';
import type { Session } from '../session.ts';

/*
 * Scripts that complete commands, options and the values of options with choices. They follow from the grammar and start
 * no process: Node would need 100 ms for each word.
 */

/** A place in the grammar, such as `posthorn/app/list`, and what may follow there. */
export interface Place {
  path: string;
  commands: readonly Word[];
  options: readonly OptionWord[];
}

interface Word {
  name: string;
  help: string;
}

interface OptionWord extends Word {
  takesValue: boolean;
  choices: readonly string[];
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
const SHELLS = ['bash', 'zsh', 'fish'] as const;

const INSTALL = `
Add one line to the file that your shell reads at its start:
  bash  eval "$(posthorn completion bash)"         in ~/.bashrc
  zsh   eval "$(posthorn completion zsh)"          in ~/.zshrc, below compinit
  fish  posthorn completion fish | source          in ~/.config/fish/config.fish`;

export function addCompletionCommand(program: Command, session: Session): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .description('print a script with which a shell completes commands and options')
    .addHelpText('after', INSTALL)
    .action((shell) => {
      session.output.raw(SCRIPTS[shell](placesOf(program)));
    });
}

/** Returns every place of the grammar, without what its help hides. The options of all commands are in each. */
export function placesOf(program: Command): Place[] {
  const help = program.createHelp();
  const common = help
    .visibleOptions(program)
    .filter(({ long }) => long !== '--help' && long !== '--version')
    .map(optionWordOf);
  const collect = (command: Command, parent: string): Place[] => {
    const path = parent === '' ? command.name() : `${parent}/${command.name()}`;
    const children = help.visibleCommands(command);
    const own = help.visibleOptions(command).map(optionWordOf);
    const names = new Set(own.map(({ name }) => name));
    const place: Place = {
      path,
      commands: children.map((child) => ({ name: child.name(), help: child.description() })),
      options: [...own, ...common.filter(({ name }) => !names.has(name))],
    };
    return [place, ...children.flatMap((child) => collect(child as Command, path))];
  };
  return collect(program, '');
}

function optionWordOf(option: Option): OptionWord {
  return {
    name: option.long ?? option.short ?? '',
    help: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  };
}

const pathsBelow = (places: readonly Place[]): string[] => places.slice(1).map(({ path }) => path);

/** The options with choices, by the place and the option before the word. */
const choicesOf = (places: readonly Place[]): { key: string; choices: readonly string[] }[] =>
  places.flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(({ name, choices }) => ({ key: `${path} ${name}`, choices })),
  );

/** The options whose value has no choices: a file name is completed, or nothing. */
const plainValuesOf = (places: readonly Place[]): string[] => {
  const options = places.flatMap((place) => place.options);
  const names = options.filter(({ takesValue, choices }) => takesValue && choices.length === 0);
  return [...new Set(names.map(({ name }) => name))];
};

function bashScript(places: readonly Place[]): string {
  const choices = choicesOf(places).map(
    ({ key, choices: values }) => `    '${key}') words='${values.join(' ')}' ;;`,
  );
  const words = places.map(({ path, commands, options }) => {
    const names = [...commands, ...options].map(({ name }) => name);
    return `        ${path}) words='${names.join(' ')}' ;;`;
  });
  return `_posthorn() {
  local place=posthorn word words='' current="\${COMP_WORDS[COMP_CWORD]}"
  local previous="\${COMP_WORDS[COMP_CWORD - 1]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place/$word" in
      ${pathsBelow(places).join('|')}) place="$place/$word" ;;
    esac
  done
  case "$place $previous" in
${choices.join('\n')}
    ${plainValuesOf(places)
      .map((name) => `*' ${name}'`)
      .join('|')}) ;;
    *)
      case "$place" in
${words.join('\n')}
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _posthorn posthorn
`;
}

function zshScript(places: readonly Place[]): string {
  const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  // A colon ends the name.
  const entry = ({ name, help }: Word): string => quote(`${name.replaceAll(':', '\\:')}:${help}`);
  const choices = choicesOf(places).map(
    ({ key, choices: values }) => `    '${key}') compadd -- ${values.map(quote).join(' ')} ;;`,
  );
  const words = places.map(
    ({ path, commands, options }) =>
      `        ${path}) commands=(${commands.map(entry).join(' ')}) options=(${options.map(entry).join(' ')}) ;;`,
  );
  return `#compdef posthorn
_posthorn() {
  local place=posthorn word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place/$word" in
      ${pathsBelow(places).join('|')}) place="$place/$word" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${choices.join('\n')}
    ${plainValuesOf(places)
      .map((name) => `*' ${name}'`)
      .join('|')}) _files ;;
    *)
      case "$place" in
${words.join('\n')}
      esac
      if [[ "\${words[CURRENT]}" == -* ]]; then
        _describe -o option options
      elif (( \${#commands} )); then
        _describe command commands
      else
        _files
      fi
      ;;
  esac
}
if [[ "\${funcstack[1]}" == _posthorn ]]; then
  _posthorn "$@"
else
  compdef _posthorn posthorn
fi
`;
}

function fishScript(places: readonly Place[]): string {
  const quote = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = places.flatMap(({ path, commands, options }) => {
    const at = `complete -c posthorn -n 'test (__posthorn_place) = ${path}'`;
    return [
      ...commands.map(({ name, help }) => `${at} -f -a ${name} -d ${quote(help)}`),
      ...options.map(({ name, help, takesValue, choices }) => {
        const values = choices.length === 0 ? '' : ` -x -a ${quote(choices.join(' '))}`;
        const value = choices.length === 0 && takesValue ? ' -r' : values;
        return `${at} -l ${name.replace(/^--/, '')}${value} -d ${quote(help)}`;
      }),
    ];
  });
  return `function __posthorn_place
  set -l place posthorn
  for word in (commandline -opc)[2..-1]
    if contains -- "$place/$word" ${pathsBelow(places).join(' ')}
      set place "$place/$word"
    end
  end
  echo $place
end
${lines.join('\n')}
`;
}
