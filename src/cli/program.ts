import { Command, Option } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { COMMANDS, helpText, PROGRAM_HELP } from './commands.ts'
import { reportError } from './exit-code.ts'
import { type Globals, type Runtime, silenced } from './runtime.ts'

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
      .addHelpText('after', helpText(entry.examples))
      .exitOverride()
      .action(async (...args: unknown[]) => {
        const { run } = await entry.load()
        const globals = globalsOf(program, runtime)
        const own = globals.quiet ? silenced(runtime) : runtime
        // commander passes the arguments, the options, and last the command itself.
        exitCode = await run(own, globals, ...(args.slice(0, -1) as never[]))
      })
    for (const argument of entry.arguments ?? []) command.addArgument(argument)
    for (const option of entry.options ?? []) command.addOption(option)
  }
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error, runtime)
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
