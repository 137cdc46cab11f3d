import { ERRORS } from '../errors.ts'

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

interface Help {
  examples: readonly string[]
  /** The exit codes that the command has; those in EXIT_CODES, or with a meaning of their own. */
  codes: readonly (number | [number, string])[]
}

const READING = [0, 1, 2, 3, 4, 5, 130]
const LOCAL = [0, 2, 4]

const HELP: Readonly<Record<string, Help>> = {
  start: {
    examples: ['start', 'start --config /etc/admin-mirror.yaml --log-format json'],
    codes: [
      [0, 'stopped by a signal; the next start continues'],
      2,
      [4, 'only a new process can use the mirror again'],
    ],
  },
  sync: {
    examples: [
      'sync',
      'sync --org acme --collection orders',
      'sync --org acme --accept-removals',
      'sync --json --quiet',
    ],
    codes: READING,
  },
  backfill: {
    examples: [
      'backfill --org acme',
      'backfill --org acme --collection orders --filter state=paid --from-page 200',
    ],
    codes: READING,
  },
  status: {
    examples: ['status', 'status --check', 'status --max-age 2h --fresh 10m --json'],
    codes: [
      [0, 'whatever it has to report; with --check, --max-age, --fresh: all is well'],
      [1, '--max-age, --fresh: a list is older; --check: a list failed or is overdue'],
      2,
      [3, '--check: a token is held'],
      4,
      [5, '--check: removals are held back'],
    ],
  },
  check: {
    examples: ['check', 'check --offline', 'check --json'],
    codes: [[0, 'nothing failed'], [1, 'network, server or rate limit'], 2, 3, 4],
  },
  verify: { examples: ['verify', 'verify --org acme --collection orders --json'], codes: READING },
  query: {
    examples: [
      "query 'SELECT * FROM sync_status'",
      "query 'SELECT state, count(*) FROM orders GROUP BY state' --format csv",
      "query 'SELECT * FROM orders WHERE state = :state' --param state=paid --timeout 30s",
    ],
    codes: [0, [1, 'not finished in time (--timeout)'], 2, 4],
  },
  export: { examples: ['export orders --format csv --output orders.csv'], codes: LOCAL },
  describe: { examples: ['describe', 'describe orders --json'], codes: LOCAL },
  snapshot: { examples: ['snapshot copy.db'], codes: [...LOCAL, 130] },
  move: {
    examples: ["move --from data/mirror.db --to 'postgres://mirror@db.example.com/shop?schema=admin_mirror'"],
    codes: [
      0,
      [1, 'the mirror is in use'],
      2,
      4,
      [5, 'it was moved before, and one of the two has changed since'],
      130,
    ],
  },
  rebuild: { examples: ['rebuild', 'rebuild orders'], codes: [...LOCAL, 130] },
  forget: {
    examples: ['forget --org acme', 'forget --org acme --collection orders --yes'],
    codes: [0, 1, 2, 4, 130],
  },
  resume: { examples: ['resume', 'resume --org acme'], codes: LOCAL },
  completion: {
    examples: ['completion bash > ~/.local/share/bash-completion/completions/admin-mirror'],
    codes: [0, 2],
  },
  schema: { examples: ['schema > config/admin-mirror.schema.json', 'schema status'], codes: [0, 2] },
  sandbox: {
    examples: [
      'sandbox --port 8080 --write-config config/sandbox.yaml',
      'sandbox --live --speed 60 --order first --orders 100000',
    ],
    codes: [0, 2],
  },
  demo: { examples: ['demo'], codes: [0, 1, 2, 4] },
}

/** The text below the options of a command: examples, and what its exit codes mean. */
export function helpText(command: string): string {
  const { examples = [], codes = LOCAL } = HELP[command] ?? {}
  const lines = codes.map((code) => (typeof code === 'number' ? [code, EXIT_CODES[code] ?? ''] : code))
  return [
    ...(examples.length > 0 ? ['', 'Examples:', ...examples.map((line) => `  admin-mirror ${line}`)] : []),
    '',
    'Exit codes:',
    ...lines.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`),
  ].join('\n')
}

/** Below the list of commands. */
export const PROGRAM_HELP = `
Examples:
  admin-mirror demo                     try it without credentials
  admin-mirror check                    before the first sync: what is wrong, and what to do
  admin-mirror sync                     copy all lists once
  admin-mirror start                    keep them up to date
  admin-mirror status                   how fresh they are, and what to do next

Exit codes:
${Object.entries(EXIT_CODES)
  .map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`)
  .join('\n')}`
