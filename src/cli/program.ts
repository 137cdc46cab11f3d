import { Writable } from 'node:stream'
import { Command, InvalidArgumentError, Option } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { EXIT_CODES, reportError } from './exit-code.ts'
import type { Globals, Invocation, Runtime } from './runtime.ts'

// What can be typed. Each command loads its file alone, so that a small one starts fast.

/** A file of `commands`. `run` gets what was typed last: the arguments, then the options. */
interface CommandModule {
  run: (runtime: Invocation, ...typed: never[]) => Promise<number>
}

/** Runs the command of this command line and returns its exit code. */
export async function runProgram(argv: readonly string[], runtime: Runtime): Promise<number> {
  let exitCode = 0
  const program = createProgram(runtime)
  addCommands(program, async (load, typed) => {
    const { run } = await load()
    const globals = program.opts<Globals>()
    const stderr = globals.quiet ? new Writable({ write: (_, __, done) => done() }) : runtime.stderr
    exitCode = await run({ ...runtime, stderr, errors: runtime.stderr, globals }, ...(typed as never[]))
  })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    return reportError(error, runtime)
  }
}

function examplesText(examples: readonly string[]): string {
  return ['', 'Examples:', ...examples.map((line) => `  admin-mirror ${line}`)].join('\n')
}

function createProgram({ env, stdout, stderr }: Runtime): Command {
  const file = 'config/admin-mirror.yaml'
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
  const examples = [
    'demo                     try it without credentials',
    'check                    before the first sync: what is wrong, and what to do',
    'sync                     copy all lists once',
    'start                    keep them up to date',
    'status                   how fresh they are, and what to do next',
  ]
  const exits = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`)
  return new Command('admin-mirror')
    .description("Keeps a faithful copy of an Administration API's lists in a local SQLite file.")
    .version(manifest.version, '-V, --version')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', [examplesText(examples), '', 'Exit codes:', ...exits].join('\n'))
    .addOption(
      new Option('--config <file>', 'configuration file').default(
        // Containers pass an empty variable where they mean none.
        env.ADMIN_MIRROR_CONFIG || file,
        `ADMIN_MIRROR_CONFIG, else ${file}`,
      ),
    )
    .addOption(new Option('--log-level <level>', 'how much to log').choices(levels).default('info'))
    .addOption(
      new Option('--log-format <format>', 'of log lines (default: pretty on a terminal, else json)').choices([
        'json',
        'pretty',
      ]),
    )
    .option('--quiet', 'write nothing but errors to standard error')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
}

type Load = () => Promise<CommandModule>

/** In the order in which help lists them. */
function addCommands(program: Command, act: (load: Load, typed: unknown[]) => Promise<void>): void {
  const add = (name: string, does: string, load: Load, example: string) =>
    program
      .command(name)
      .description(does)
      .addHelpText('after', examplesText([example]))
      // commander passes the arguments, the options, and last the command itself.
      .action((...args: unknown[]) => act(load, args.slice(0, -1)))
  add(
    'start',
    'walk the lists on their schedules, and refresh them in between, until SIGTERM, SIGINT or SIGHUP',
    () => import('./commands/start.ts'),
    'start --config /etc/admin-mirror.yaml --log-format json',
  )
  add(
    'sync',
    'walk the lists once, now; unfinished walks continue where they stopped',
    () => import('./commands/sync.ts'),
    'sync --org acme --collection orders --accept-removals',
  )
    .addOption(orgs())
    .addOption(collections())
    .option('--refresh', 'read only the newest end of each list, instead of all of it')
    .option('--accept-removals', 'remove rows that are held back, or would be')
    .option('--accept-address', 'api.baseUrl is another address of the same API')
    .addOption(wait())
  add(
    'backfill',
    'walk from the first page, whatever the checkpoint of a sync says',
    () => import('./commands/backfill.ts'),
    'backfill --org acme --filter state=paid --from-page 200',
  )
    .requiredOption('--org <org>', `${ORG} (may be repeated)`, collect)
    .addOption(collections())
    .addOption(pairs('--filter <K=V>', 'a filter on top of the configured ones'))
    .option('--from-page <n>', 'begin at this page', whole(1))
    .option('--restart', 'begin again instead of continuing the same backfill')
    .addOption(wait())
  add(
    'status',
    'how fresh each list is, what went wrong, and what to type next',
    () => import('./commands/status.ts'),
    'status --max-age 2h --fresh 10m --json',
  )
    .option('--json', 'as JSON')
    .option('--check', 'exit with 4, 3, 5 or 1 if the mirror, a token, removals or a list need attention')
    .option('--max-age <duration>', "exit with 1 if a list's last full walk began longer ago, such as 24h")
    .option('--fresh <duration>', 'exit with 1 if rows added longer ago may be missing, such as 10m')
    .addOption(database())
  add(
    'query',
    'read-only SQL on the mirror',
    () => import('./commands/query.ts'),
    "query 'SELECT * FROM orders WHERE state = :state' --param state=paid --format parquet > paid.parquet",
  )
    .argument('<sql>', 'one statement; - reads it from standard input')
    .addOption(format('table', 'json', 'ndjson', 'csv', 'parquet').default('table'))
    .addOption(pairs('--param <NAME=VALUE>', 'the value of :NAME; on PostgreSQL :NAME::bigint says its type'))
    .addOption(database())
  add(
    'export',
    'write all rows of a table or view; as ndjson the items of a collection, in JSON',
    () => import('./commands/export.ts'),
    'export orders --format csv > orders.csv',
  )
    .argument('<name>', 'orders, orders__items, orders_history, ...')
    .addOption(format('csv', 'ndjson', 'parquet').makeOptionMandatory())
    .addOption(orgs())
    .addOption(database())
  add(
    'verify',
    'walk the lists and compare them with the mirror, writing no rows',
    () => import('./commands/verify.ts'),
    'verify --org acme --collection orders',
  )
    .addOption(orgs())
    .addOption(collections())
    .addOption(wait())
  add(
    'snapshot',
    'copy the mirror into one file that any tool can open',
    () => import('./commands/snapshot.ts'),
    'snapshot copy.db',
  )
    .argument('<file>')
    .addOption(database())
  add(
    'check',
    'try the configuration, the mirror, the API and every token, and say what to fix',
    () => import('./commands/check.ts'),
    'check',
  )
  add(
    'resume',
    'lift the hold of a refused token, for all that use it, and forget a wait beyond rateLimit.maxWait',
    () => import('./commands/resume.ts'),
    'resume --org acme',
  ).addOption(orgs())
  add(
    'forget',
    'delete everything the mirror holds about an organization, or a list of it',
    () => import('./commands/forget.ts'),
    'forget --org acme --collection orders --yes',
  )
    // Takes several, so that a second one is refused instead of replacing the first.
    .requiredOption('--org <org>', ORG, collect)
    .addOption(collections())
    .option('--yes', 'delete: there is no way back')
  add(
    'move',
    'copy a mirror into a schema of a PostgreSQL server, and compare',
    () => import('./commands/move.ts'),
    "move --from data/mirror.db --to 'postgres://mirror@db.example.com/shop?schema=admin_mirror'",
  )
    .requiredOption('--from <file>', 'the mirror')
    .requiredOption('--to <address>', 'postgres://user@host:5432/name?schema=admin_mirror')
  add(
    'sandbox',
    'serve a made-up Administration API on loopback, to try everything without credentials',
    () => import('./commands/sandbox.ts'),
    'sandbox --port 8080 --write-config config/sandbox.yaml',
  )
    .option('--port <n>', 'port to listen on (0: any free one)', whole(0, 65535), 0)
    .option('--orders <n>', 'orders of each organization', whole(), 1000)
    .option('--establishments <n>', 'establishments of each organization', whole(), 40)
    .option('--organizations <n>', 'organizations', whole(1, 1000), 2)
    .option('--requests-per-minute <n>', 'rate limit of each token (0: none)', whole(), 60)
    .option('--live', 'new orders come while it runs')
    .option('--write-config <file>', 'write a configuration that uses it')
  add(
    'demo',
    'a sandbox, a first sync of it, and what the mirror answers',
    () => import('./commands/demo.ts'),
    'demo',
  )
}

const ORG = "an organization's name or UUID"

/** An option that may be typed several times. `without` says what a command does without it. */
const repeated = (flags: string, description: string, without: string) =>
  new Option(flags, `${description} (may be repeated)`).argParser(collect).default([], without)

const orgs = () => repeated('--org <org>', ORG, 'all')
const collections = () => repeated('--collection <name>', 'a collection', 'all')
const wait = () => new Option('--wait', 'wait for lists that another process is working on')
const database = () =>
  new Option('--database <file>', 'a mirror, a published file or a snapshot, without a configuration')
const format = (...formats: string[]) => new Option('--format <format>', 'output format').choices(formats)
const pairs = (flags: string, description: string) =>
  new Option(flags, `${description} (may be repeated)`).argParser(collectPair).default([], 'none')

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value]
}

function collectPair(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}

/** Reads a whole number. */
function whole(least = 0, most = Number.MAX_SAFE_INTEGER) {
  return (value: string): number => {
    const typed = Number(value)
    if (/^\d+$/.test(value) && typed >= least && typed <= most) return typed
    const range = most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''
    throw new InvalidArgumentError(`Expected a whole number from ${least}${range}.`)
  }
}
