import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { reportError } from './exit-code.ts'
import { helpText, PROGRAM_HELP } from './help.ts'
import { type Globals, type Runtime, silenced, typedConfig } from './runtime.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** A file of `commands`. `run` gets the arguments and the options of its command last. */
interface CommandModule {
  run: (runtime: Runtime, globals: Globals, ...args: never[]) => Promise<number>
}

/** Defines a command. */
type Define = (name: string, description: string, load: () => Promise<CommandModule>) => Command

/**
 * Runs the command of this command line and returns its exit code. Loads only the module of that command, so that a small one
 * starts fast.
 */
export async function runProgram(argv: readonly string[], runtime: Runtime): Promise<number> {
  let exitCode = 0
  const program = createProgram(runtime)
  const define: Define = (name, description, load) =>
    program
      .command(name)
      .description(description)
      .helpOption('-h, --help', 'show help')
      .addHelpText('after', helpText(name))
      .exitOverride()
      .action(async (...args: unknown[]) => {
        const { run } = await load()
        // commander passes the arguments, the options, and last the command itself.
        const globals = globalsOf(program, runtime)
        exitCode = await run(
          globals.quiet ? silenced(runtime) : runtime,
          globals,
          ...(args.slice(0, -1) as never[]),
        )
      })
  defineCommands(define)
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

/** Defines all commands, in the order in which help lists them. */
function defineCommands(define: Define): void {
  // The commands that copy lists.
  define(
    'start',
    "run every organization's jobs on its schedule, until SIGTERM, SIGINT or SIGHUP",
    () => import('./commands/start.ts'),
  )
  define(
    'sync',
    'run the jobs once, now; unfinished walks continue where they stopped',
    () => import('./commands/sync.ts'),
  )
    .addOption(orgOption())
    .addOption(collectionOption())
    .option('--refresh', 'read only the newest end of each list, instead of all of it')
    .option('--accept-removals', 'lift the brake on removals for this command')
    .option('--accept-address', 'take api.baseUrl for another address of the API that the mirror holds')
    .addOption(waitOption())
    .option('--json', 'write how the runs ended as JSON')
  define(
    'backfill',
    'walk from the first page, whatever the checkpoint of a sync says',
    () => import('./commands/backfill.ts'),
  )
    .addOption(orgOption('none, and at least one is needed'))
    .addOption(collectionOption())
    .addOption(filterOption())
    .option('--from-page <n>', 'begin at this page', numberOption(1))
    .option('--restart', 'begin again instead of continuing the same backfill')
    .addOption(waitOption())

  // The commands that only read the mirror.
  define(
    'status',
    'how fresh each list is, what went wrong, and what to type next',
    () => import('./commands/status.ts'),
  )
    .option('--json', 'as JSON')
    .option(
      '--check',
      'exit with 4 if the mirror cannot be used or written (its disk is full), else 3 for a held token, else 5 for removals held back, else 1 for a failing or overdue list',
    )
    .option('--max-age <duration>', 'exit with 1 if the last full walk of a list began longer ago (5m, 24h)')
    .option('--fresh <duration>', 'exit with 1 if rows that were added longer ago may be missing (10m)')
    .addOption(databaseOption())
  define('query', 'read-only SQL on the mirror', () => import('./commands/query.ts'))
    .argument('<sql>', 'one statement; - reads it from standard input')
    .addOption(formatOption('table', 'json', 'ndjson', 'csv', 'parquet').default('table'))
    .addOption(paramOption())
    .option('--output <file>', 'a file instead of standard output')
    .option('--timeout <duration>', 'stop it after so long, with exit code 1 (500ms, 30s, 5m)')
    .addOption(databaseOption())
  define('export', 'write the rows of a collection, or of a view of it', () => import('./commands/export.ts'))
    .argument('<name>', 'orders, orders__items, orders_history, ...')
    .addOption(formatOption('csv', 'ndjson', 'parquet').makeOptionMandatory())
    .addOption(orgOption())
    .option(
      '--since <time>',
      'changed then or later (2026-11-20, 2026-11-20T08:30Z); removals: orders_changes',
    )
    .option('--since-seq <n>', 'orders_changes: events with a greater seq, in its order')
    .option('--envelope', 'ndjson: with organization, key and times around each item')
    .option('--bom', 'csv: begin with the mark by which spreadsheets recognize UTF-8')
    .option('--output <file>', 'a file instead of standard output')
    .addOption(databaseOption())
  define('describe', 'what each column holds, and how fresh it is', () => import('./commands/describe.ts'))
    .argument('[collection]', 'a collection, or a view of one (default: all collections)')
    .option('--json', 'as JSON')
    .addOption(databaseOption())

  // The commands that check, rebuild or delete what the mirror holds.
  define(
    'verify',
    'walk the lists and compare them with the mirror, writing no rows',
    () => import('./commands/verify.ts'),
  )
    .addOption(orgOption())
    .addOption(collectionOption())
    .addOption(waitOption())
    .option('--json', 'as JSON')
  define(
    'rebuild',
    'rebuild the typed tables and the views from the raw rows',
    () => import('./commands/rebuild.ts'),
  ).argument('[collection...]', 'collections (default: all)')
  define(
    'forget',
    'delete everything the mirror holds about an organization, or a list of it',
    () => import('./commands/forget.ts'),
  )
    .addOption(oneOrgOption())
    .addOption(collectionOption())
    .option('--yes', 'delete; without this option, only list what would be deleted')

  // The commands that copy the mirror.
  define(
    'snapshot',
    'copy the mirror into one file that any tool can open',
    () => import('./commands/snapshot.ts'),
  )
    .argument('<file>')
    .option('--database <file>', 'a mirror or a copy, instead of the mirror of the configuration')
  define(
    'move',
    'copy a mirror into a schema of a PostgreSQL server, and compare',
    () => import('./commands/move.ts'),
  )
    .requiredOption('--from <file>', 'the mirror')
    .requiredOption('--to <address>', 'postgres://user@host:5432/name?schema=admin_mirror')

  // The other commands.
  define(
    'resume',
    'lift the hold that a refused token left, and forget a wait beyond rateLimit.maxWait',
    () => import('./commands/resume.ts'),
  ).addOption(orgOption())
  define(
    'check',
    'try the configuration, the mirror, the API and every token, and say what to fix',
    () => import('./commands/check.ts'),
  )
    .option('--offline', 'send nothing')
    .option('--json', 'as JSON')
  define(
    'schema',
    'print the JSON Schema of the configuration file, or of what a command writes as JSON',
    () => import('./commands/schema.ts'),
  ).addArgument(
    new Argument('[of]', 'what it describes')
      .choices(['config', 'check', 'status', 'sync', 'verify'])
      .default('config'),
  )
  define(
    'sandbox',
    'serve a made-up Administration API on loopback, to try everything without credentials',
    () => import('./commands/sandbox.ts'),
  )
    .option('--port <n>', 'port to listen on (0: any free one)', numberOption(0, 65535), 0)
    .option('--orders <n>', 'orders of each organization', numberOption(0), 1000)
    .option('--establishments <n>', 'establishments of each organization', numberOption(0), 40)
    .option('--organizations <n>', 'organizations', numberOption(1, 1000), 2)
    .option('--requests-per-minute <n>', 'rate limit of each token (0: none)', numberOption(0), 60)
    .option('--seed <n>', 'the same seed gives the same data', numberOption(0), 1)
    .option('--live', 'orders come, change and go while it runs: 3 new ones a minute')
    .option('--speed <n>', 'with --live: time passes so many times faster', numberOption(1, 86_400), 1)
    .addOption(
      new Option('--order <end>', 'the end of the list where new orders appear')
        .choices(['first', 'last'])
        .default('last'),
    )
    .option('--write-config <file>', 'write a configuration that uses it')
  define('demo', 'try everything on this machine: a made-up API, a sync of it, and queries', async () => {
    const { demo } = await import('./commands/demo.ts')
    return { run: (runtime) => demo(runtime, runProgram) }
  })
}

const ORG = "an organization's name or UUID"

/** `without` says what a command does without the option. */
const orgOption = (without = 'all') => repeatedOption('--org <org>', ORG, without)
const collectionOption = () => repeatedOption('--collection <name>', 'a collection', 'all')
const waitOption = () => new Option('--wait', 'wait for jobs that another process is working on')

/** Takes several values, so that a second one is refused instead of replacing the first. */
const oneOrgOption = () => new Option('--org <org>', ORG).argParser(collect).default([], 'none')

const filterOption = () =>
  new Option('--filter <K=V>', 'a filter on top of the configured ones (may be repeated)')
    .argParser(collectPair)
    .default([], 'none')

const paramOption = () =>
  new Option(
    '--param <NAME=VALUE>',
    'the value of :NAME in the SQL (may be repeated; on PostgreSQL :NAME::bigint says its type where nothing else does)',
  )
    .argParser(collectPair)
    .default([], 'none')

/** For commands that only read. */
const databaseOption = () =>
  new Option('--database <file>', 'a mirror, a published file or a copy; then no configuration is read')

const formatOption = (...formats: string[]) =>
  new Option('--format <format>', 'output format').choices(formats)

function repeatedOption(flags: string, description: string, without: string): Option {
  return new Option(flags, `${description} (may be repeated)`).argParser(collect).default([], without)
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value]
}

function collectPair(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}

/** Parses the value of an option. */
function numberOption(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (value: string): number => {
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    const range = most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''
    throw new InvalidArgumentError(`Expected a whole number from ${least}${range}.`)
  }
}

const COMPLETION = 'completion'

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
    .addHelpText('after', helpText(COMPLETION))
    .exitOverride()
}
