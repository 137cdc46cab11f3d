import { Argument, Command, Option } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { COMMANDS, helpText, PROGRAM_HELP } from './commands.ts'
import { reportError } from './exit-code.ts'
import { type Globals, type Runtime, silenced, typedConfig } from './runtime.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Runs the command of this command line and returns its exit code. */
export async function runProgram(argv: readonly string[], runtime: Runtime): Promise<number> {
  let exitCode = 0
  const program = createProgram(runtime)
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const command = program
      .command(name)
      .description(entry.does)
      .helpOption('-h, --help', 'show help')
      .addHelpText('after', helpText(entry))
      .exitOverride()
      .action(async (...args: unknown[]) => {
        const { run } = await entry.load(runProgram)
        const globals = globalsOf(program, runtime)
        const own = globals.quiet ? silenced(runtime) : runtime
        // commander passes the arguments, the options, and last the command itself.
        exitCode = await run(own, globals, ...(args.slice(0, -1) as never[]))
      })
    for (const argument of entry.arguments ?? []) command.addArgument(argument)
    for (const option of entry.options ?? []) command.addOption(option)
  }
  try {
    await defineCompletion(program, argv)
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error, runtime, typedConfig(globalsOf(program, runtime)))
  }
}

/** The configuration may be named by the environment. Containers pass an empty variable where they mean none. */
function globalsOf(program: Command, { env }: Runtime): Globals {
  const typed = program.opts<Globals>()
  const config = typed.config ?? (env.ADMIN_MIRROR_CONFIG || undefined)
  return config === undefined ? typed : { ...typed, config }
}

function createProgram({ stdout, stderr }: Runtime): Command {
  return new Command('admin-mirror')
    .description("Keeps a faithful copy of an Administration API's lists in a local SQLite file.")
    .version(manifest.version, '-V, --version')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', PROGRAM_HELP)
    .option('--config <file>', 'configuration file (else ADMIN_MIRROR_CONFIG, else config/admin-mirror.yaml)')
    .addOption(new Option('--log-level <level>', 'how much to log').choices(LEVELS).default('info'))
    .addOption(
      new Option('--log-format <format>', 'of log lines (default: pretty on a terminal, else json)').choices([
        'json',
        'pretty',
      ]),
    )
    .option('--quiet', 'write nothing but errors to standard error')
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
}

const COMPLETION = 'completion'
const COMPLETION_HELP = {
  examples: ['completion bash > ~/.local/share/bash-completion/completions/admin-mirror'],
  exits: [0, 2],
}

/** The words after which a shell completes the name of a file. */
const BEFORE_A_FILE = new Set(['--config', '--database', '--from', '--output', '--write-config', 'snapshot'])

/** The library's `ShellCompDirectiveDefault`. */
const SHELL_COMPLETES_FILES = 0

/** The script of the library would have bash run what is in the words that are completed, such as $(...). */
const BASH_SCRIPT = `# bash completion for admin-mirror
__admin_mirror_complete() {
  local cur=\${COMP_WORDS[COMP_CWORD]} cword=$COMP_CWORD out value
  local words=("\${COMP_WORDS[@]}")
  # Of bash-completion: without it, --option=value is three words.
  if declare -F _get_comp_words_by_ref > /dev/null; then _get_comp_words_by_ref -n =: cur words cword; fi
  out=$(admin-mirror complete -- "\${words[@]:1:cword}" 2> /dev/null)
  # The last line says whether files are meant.
  [[ \${out##*:} == 0 ]] || compopt +o default
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    [[ -z $value || $value != "$cur"* ]] || COMPREPLY+=("$value")
  done <<< "\${out%:*}"
}
complete -o default -F __admin_mirror_complete admin-mirror
`

/**
 * Defines `completion`, which prints a script for a shell, and the hidden `complete`, which that script calls. The library is
 * loaded only if one of them is typed; else `completion` is only listed among the commands.
 */
async function defineCompletion(program: Command, argv: readonly string[]): Promise<void> {
  if (argv.some((word) => word === COMPLETION || word === 'complete')) {
    const { default: addCompletion } = await import('@bomb.sh/tab/commander')
    const completing = addCompletion(program, { completionCommandName: COMPLETION })
    // The library has the shell offer no files, whatever is completed.
    if (BEFORE_A_FILE.has(argv.at(-2) ?? ''))
      Object.defineProperty(completing, 'directive', { get: () => SHELL_COMPLETES_FILES, set: () => {} })
    const printScript = completing.setup.bind(completing)
    completing.setup = (name, called, shell) =>
      shell === 'bash' ? program.configureOutput().writeOut?.(BASH_SCRIPT) : printScript(name, called, shell)
  } else program.command(COMPLETION).addArgument(new Argument('<shell>'))
  program.commands
    .find((command) => command.name() === COMPLETION)
    ?.description('print the script by which a shell completes commands and options')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', helpText(COMPLETION_HELP))
    .exitOverride()
}
