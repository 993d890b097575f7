import { Argument, type Command, type Option } from '@commander-js/extra-typings';
import type { Session } from '../session.ts';
import { pathOf } from '../usage.ts';

/*
 * Scripts that complete commands, options and known values. They follow from the grammar and do not start Node, which
 * would need 100 ms for each word.
 */

/** A place in the grammar, such as `posthorn/app/list`, and what may follow there. */
export interface Place {
  path: string;
  commands: readonly Word[];
  options: readonly OptionWord[];
  /** What the first argument can be. */
  values: Values;
}

interface Word {
  name: string;
  help: string;
}

interface OptionWord extends Word {
  takesValue: boolean;
  values: Values;
}

/** The profiles of the user are read when the shell completes. Without any, a file name is completed. */
type Values = readonly string[] | 'profiles';

const hasValues = (values: Values): boolean => values.length > 0;

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
      values: valuesOf(command),
    };
    return [place, ...children.flatMap((child) => collect(child as Command, path))];
  };
  return collect(program, '');
}

const WITH_PROFILES = ['posthorn profile use', 'posthorn profile delete'];

function valuesOf(command: Command): Values {
  if (WITH_PROFILES.includes(pathOf(command))) return 'profiles';
  return command.registeredArguments[0]?.argChoices ?? [];
}

function optionWordOf(option: Option): OptionWord {
  const { long, short, description, required, optional, argChoices } = option;
  return {
    name: long ?? short ?? '',
    help: description,
    takesValue: required || optional,
    values: long === '--profile' ? 'profiles' : (argChoices ?? []),
  };
}

const pathsBelow = (places: readonly Place[]): string[] => places.slice(1).map(({ path }) => path);

/** The options with known values, by the place and the option before the word. */
const knownValuesOf = (places: readonly Place[]): { key: string; values: Values }[] =>
  places.flatMap(({ path, options }) =>
    options
      .filter(({ values }) => hasValues(values))
      .map(({ name, values }) => ({ key: `${path} ${name}`, values })),
  );

/** The options with a value, in whatever place: the word after one is no command. */
const namesWithValue = (
  places: readonly Place[],
  isWanted = (_values: Values) => true,
): string[] => {
  const options = places.flatMap((place) => place.options);
  const names = options.filter(({ takesValue, values }) => takesValue && isWanted(values));
  return [...new Set(names.map(({ name }) => name))];
};

/** A file name is completed for these, or nothing. */
const plainNamesOf = (places: readonly Place[]): string[] =>
  namesWithValue(places, (values) => !hasValues(values));

/** Prints the names of the profiles in config.toml, for bash and zsh. */
const PROFILES = `_posthorn_profiles() {
  sed -n 's/^\\[profiles\\."\\{0,1\\}\\([^]"]*\\)"\\{0,1\\}\\]$/\\1/p' \\
    "\${XDG_CONFIG_HOME:-$HOME/.config}/posthorn/config.toml" 2>/dev/null
}`;

/** The lines of bash and zsh that follow the words before the one to complete. */
const stepOf = (places: readonly Place[]): string => `    case "$word" in
      ${namesWithValue(places).join('|')}) isValue=1 ;;
    esac
    case "$place/$word" in
      ${pathsBelow(places).join('|')}) place="$place/$word" ;;
    esac`;

function bashScript(places: readonly Place[]): string {
  const wordsOf = (values: Values): string =>
    values === 'profiles' ? '"$(_posthorn_profiles)"' : `'${values.join(' ')}'`;
  const known = knownValuesOf(places).map(
    ({ key, values }) => `    '${key}') words=${wordsOf(values)} ;;`,
  );
  const words = places.map(({ path, commands, options, values }) => {
    const names = [...commands, ...options].map(({ name }) => name);
    const first = hasValues(values) ? `" "${wordsOf(values)}` : '';
    return `        ${path}) words='${names.join(' ')}'${first} ;;`;
  });
  return `${PROFILES}
_posthorn() {
  local place=posthorn word words='' isValue='' current="\${COMP_WORDS[COMP_CWORD]}"
  local previous="\${COMP_WORDS[COMP_CWORD - 1]}"
  # Bash makes three words of --option=value.
  if [[ "$current" == '=' ]]; then current=''
  elif [[ "$previous" == '=' ]]; then previous="\${COMP_WORDS[COMP_CWORD - 2]}"
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ -n "$isValue" ]]; then
      [[ "$word" == '=' ]] || isValue=''
      continue
    fi
${stepOf(places)}
  done
  case "$place $previous" in
${known.join('\n')}
    ${plainNamesOf(places)
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

const quoteInZsh = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function zshListOf(values: Values): string {
  if (values === 'profiles') return '${(f)"$(_posthorn_profiles)"}';
  return values.map(quoteInZsh).join(' ');
}

/** The lines that set the lists of each place. */
function zshWordsOf(places: readonly Place[]): string {
  // A colon ends the name.
  const entry = ({ name, help }: Word): string =>
    quoteInZsh(`${name.replaceAll(':', '\\:')}:${help}`);
  const lines = places.map(({ path, commands, options, values }) => {
    const [ofCommands, ofOptions] = [commands, options].map((each) => each.map(entry).join(' '));
    return `        ${path}) commands=(${ofCommands ?? ''}) options=(${ofOptions ?? ''}) values=(${zshListOf(values)}) ;;`;
  });
  return lines.join('\n');
}

function zshScript(places: readonly Place[]): string {
  const known = knownValuesOf(places).map(
    ({ key, values }) => `    '${key}') compadd -- ${zshListOf(values)} ;;`,
  );
  return `#compdef posthorn
${PROFILES}
_posthorn() {
  local place=posthorn word previous isValue=''
  local -a commands options values
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n "$isValue" ]]; then
      isValue=''
      continue
    fi
${stepOf(places)}
  done
  previous="\${words[CURRENT-1]}"
  if [[ "\${words[CURRENT]}" == --*=* ]]; then
    previous="\${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  case "$place $previous" in
${known.join('\n')}
    ${plainNamesOf(places)
      .map((name) => `*' ${name}'`)
      .join('|')}) _files ;;
    *)
      case "$place" in
${zshWordsOf(places)}
      esac
      if [[ "\${words[CURRENT]}" == -* ]]; then
        _describe -o option options
      elif (( \${#commands} )); then
        _describe command commands
      elif (( \${#values} )); then
        compadd -a values
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
  const listOf = (values: Values): string =>
    quote(values === 'profiles' ? '(__posthorn_profiles)' : values.join(' '));
  const lines = places.flatMap(({ path, commands, options, values: first }) => {
    const at = `complete -c posthorn -n 'test (__posthorn_place) = ${path}'`;
    return [
      ...commands.map(({ name, help }) => `${at} -f -a ${name} -d ${quote(help)}`),
      ...(hasValues(first) ? [`${at} -f -a ${listOf(first)}`] : []),
      ...options.map(({ name, help, takesValue, values }) => {
        const known = hasValues(values) ? ` -x -a ${listOf(values)}` : '';
        const value = known === '' && takesValue ? ' -r' : known;
        return `${at} -l ${name.replace(/^--/, '')}${value} -d ${quote(help)}`;
      }),
    ];
  });
  return `function __posthorn_profiles
  set -l folder ~/.config
  set -q XDG_CONFIG_HOME; and set folder $XDG_CONFIG_HOME
  sed -n 's/^\\[profiles\\."\\{0,1\\}\\([^]"]*\\)"\\{0,1\\}\\]$/\\1/p' $folder/posthorn/config.toml 2>/dev/null
end
function __posthorn_place
  set -l place posthorn
  set -l isValue 0
  for word in (commandline -opc)[2..-1]
    if test $isValue = 1
      set isValue 0
    else if contains -- $word ${namesWithValue(places).join(' ')}
      set isValue 1
    else if contains -- "$place/$word" ${pathsBelow(places).join(' ')}
      set place "$place/$word"
    end
  end
  echo $place
end
${lines.join('\n')}
`;
}
