import { Argument, InvalidArgumentError, Option } from 'commander'
import { ERRORS } from '../errors.ts'
import type { Globals, Runtime } from './runtime.ts'

/** A command: what can be typed, and what its help says. */
interface CommandEntry {
  does: string
  arguments?: readonly Argument[]
  options?: readonly Option[]
  examples: readonly string[]
  /** Loads its file alone, so that a small command starts fast. */
  load: () => Promise<CommandModule>
}

/** A file of `commands`. `run` gets what was typed last: the arguments, then the options. */
interface CommandModule {
  run: (runtime: Runtime, globals: Globals, ...typed: never[]) => Promise<number>
}

const REFUSED_STATUSES = Object.values(ERRORS).flatMap(({ exitCode, status }) =>
  exitCode === 3 && status !== undefined ? [status] : [],
)

/** What each exit code means, whatever the command is. */
export const EXIT_CODES: Readonly<Record<number, string>> = {
  0: 'all that was asked for is done',
  1: 'a list failed: server, network, rate limit, an answer that cannot be trusted, or busy elsewhere',
  2: 'usage or configuration error; nothing was sent or written',
  3: `access refused (${REFUSED_STATUSES.join(', ')}): somebody has to act`,
  4: 'the mirror cannot be used: locked, not writable, disk full, damaged, not ours, too new',
  5: 'the mirror and the API are apart: verify found a difference, removals are held back, or a list ended early',
  130: 'stopped by SIGINT (143: SIGTERM, 129: SIGHUP); the next run continues',
}

const option = (flags: string, description: string) => new Option(flags, description)
const argument = (name: string, description = '') => new Argument(name, description)

/** An option that may be typed several times. `without` says what a command does without it. */
const repeated = (flags: string, description: string, without: string) =>
  option(flags, `${description} (may be repeated)`).argParser(collect).default([], without)

/** The same of NAME=VALUE. */
const pairs = (flags: string, description: string) =>
  option(flags, `${description} (may be repeated)`).argParser(collectPair).default([], 'none')

const format = (...formats: string[]) => option('--format <format>', 'output format').choices(formats)

const ORG = "an organization's name or UUID"
const ORGS = repeated('--org <org>', ORG, 'all')
const ORGS_NEEDED = option('--org <org>', `${ORG} (may be repeated)`).argParser(collect).makeOptionMandatory()
const COLLECTIONS = repeated('--collection <name>', 'a collection', 'all')
const WAIT = option('--wait', 'wait for lists that another process is working on')
/** For commands that only read. */
const DATABASE = option('--database <file>', 'a mirror, a published file or a copy, without a configuration')

/** In the order in which help lists them. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  start: {
    does: 'walk the lists on their schedules, and refresh them in between, until SIGTERM, SIGINT or SIGHUP',
    examples: ['start', 'start --config /etc/admin-mirror.yaml --log-format json'],
    load: () => import('./commands/start.ts'),
  },
  sync: {
    does: 'walk the lists once, now; unfinished walks continue where they stopped',
    options: [
      ORGS,
      COLLECTIONS,
      option('--refresh', 'read only the newest end of each list, instead of all of it'),
      option('--accept-removals', 'lift the brake on removals for this command'),
      option('--accept-address', 'api.baseUrl is another address of the same API'),
      WAIT,
    ],
    examples: ['sync', 'sync --org acme --collection orders', 'sync --org acme --accept-removals'],
    load: () => import('./commands/sync.ts'),
  },
  backfill: {
    does: 'walk from the first page, whatever the checkpoint of a sync says',
    options: [
      ORGS_NEEDED,
      COLLECTIONS,
      pairs('--filter <K=V>', 'a filter on top of the configured ones'),
      number('--from-page <n>', 'begin at this page', { least: 1 }),
      option('--restart', 'begin again instead of continuing the same backfill'),
      WAIT,
    ],
    examples: ['backfill --org acme', 'backfill --org acme --filter state=paid --from-page 200'],
    load: () => import('./commands/backfill.ts'),
  },
  status: {
    does: 'how fresh each list is, what went wrong, and what to type next',
    options: [
      option('--json', 'as JSON'),
      option('--check', 'exit with 4, 3, 5 or 1 if the mirror, a token, removals or a list need attention'),
      option('--max-age <duration>', 'exit with 1 if the last full walk of a list began longer ago (24h)'),
      option('--fresh <duration>', 'exit with 1 if rows added longer ago may be missing (10m)'),
      DATABASE,
    ],
    examples: ['status', 'status --check', 'status --max-age 2h --fresh 10m --json'],
    load: () => import('./commands/status.ts'),
  },
  query: {
    does: 'read-only SQL on the mirror',
    arguments: [argument('<sql>', 'one statement; - reads it from standard input')],
    options: [
      format('table', 'json', 'ndjson', 'csv', 'parquet').default('table'),
      pairs('--param <NAME=VALUE>', 'the value of :NAME; on PostgreSQL :NAME::bigint says its type'),
      DATABASE,
    ],
    examples: [
      "query 'SELECT * FROM sync_status'",
      "query 'SELECT state, count(*) FROM orders GROUP BY state' --format csv",
      "query 'SELECT * FROM orders WHERE state = :state' --param state=paid --format parquet > paid.parquet",
    ],
    load: () => import('./commands/query.ts'),
  },
  export: {
    does: 'write all rows of a table or view; as ndjson the items of a collection, in JSON',
    arguments: [argument('<name>', 'orders, orders__items, orders_history, ...')],
    options: [format('csv', 'ndjson', 'parquet').makeOptionMandatory(), ORGS, DATABASE],
    examples: ['export orders --format csv > orders.csv'],
    load: () => import('./commands/export.ts'),
  },
  verify: {
    does: 'walk the lists and compare them with the mirror, writing no rows',
    options: [ORGS, COLLECTIONS, WAIT],
    examples: ['verify', 'verify --org acme --collection orders'],
    load: () => import('./commands/verify.ts'),
  },
  snapshot: {
    does: 'copy the mirror into one file that any tool can open',
    arguments: [argument('<file>')],
    options: [DATABASE],
    examples: ['snapshot copy.db'],
    load: () => import('./commands/snapshot.ts'),
  },
  check: {
    does: 'try the configuration, the mirror, the API and every token, and say what to fix',
    examples: ['check'],
    load: () => import('./commands/check.ts'),
  },
  resume: {
    does: 'lift the hold that a refused token left, and forget a wait beyond rateLimit.maxWait',
    options: [ORGS],
    examples: ['resume', 'resume --org acme'],
    load: () => import('./commands/resume.ts'),
  },
  forget: {
    does: 'delete everything the mirror holds about an organization, or a list of it',
    options: [
      // Takes several, so that a second one is refused instead of replacing the first.
      option('--org <org>', ORG).argParser(collect).makeOptionMandatory(),
      COLLECTIONS,
      option('--yes', 'delete: there is no way back'),
    ],
    examples: ['forget --org acme --yes', 'forget --org acme --collection orders --yes'],
    load: () => import('./commands/forget.ts'),
  },
  move: {
    does: 'copy a mirror into a schema of a PostgreSQL server, and compare',
    options: [
      option('--from <file>', 'the mirror').makeOptionMandatory(),
      option('--to <address>', 'postgres://user@host:5432/name?schema=admin_mirror').makeOptionMandatory(),
    ],
    examples: ["move --from data/mirror.db --to 'postgres://mirror@db.example.com/shop?schema=admin_mirror'"],
    load: () => import('./commands/move.ts'),
  },
  sandbox: {
    does: 'serve a made-up Administration API on loopback, to try everything without credentials',
    options: [
      number('--port <n>', 'port to listen on (0: any free one)', { most: 65535, without: 0 }),
      number('--orders <n>', 'orders of each organization', { without: 1000 }),
      number('--establishments <n>', 'establishments of each organization', { without: 40 }),
      number('--organizations <n>', 'organizations', { least: 1, most: 1000, without: 2 }),
      number('--requests-per-minute <n>', 'rate limit of each token (0: none)', { without: 60 }),
      option('--live', 'new orders come while it runs'),
      option('--write-config <file>', 'write a configuration that uses it'),
    ],
    examples: ['sandbox --port 8080 --write-config config/sandbox.yaml', 'sandbox --live --orders 100000'],
    load: () => import('./commands/sandbox.ts'),
  },
  demo: {
    does: 'a sandbox, a first sync of it, and what the mirror answers',
    examples: ['demo'],
    load: () => import('./commands/demo.ts'),
  },
}

/** Below the options of a command. */
export function helpText(examples: readonly string[]): string {
  return ['', 'Examples:', ...examples.map((line) => `  admin-mirror ${line}`)].join('\n')
}

/** Below the list of commands. */
export const PROGRAM_HELP = [
  helpText([
    'demo                     try it without credentials',
    'check                    before the first sync: what is wrong, and what to do',
    'sync                     copy all lists once',
    'start                    keep them up to date',
    'status                   how fresh they are, and what to do next',
  ]),
  '',
  'Exit codes:',
  ...Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`),
].join('\n')

/** An option that takes a whole number. */
function number(
  flags: string,
  description: string,
  {
    least = 0,
    most = Number.POSITIVE_INFINITY,
    without,
  }: { least?: number; most?: number; without?: number },
): Option {
  return option(flags, description)
    .default(without)
    .argParser((value: string): number => {
      const typed = Number(value)
      if (/^\d+$/.test(value) && Number.isSafeInteger(typed) && typed >= least && typed <= most) return typed
      const range = most < Number.POSITIVE_INFINITY ? ` to ${most}` : ''
      throw new InvalidArgumentError(`Expected a whole number from ${least}${range}.`)
    })
}

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value]
}

function collectPair(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}
