import { Command, CommanderError, Option } from 'commander'
import { KnownError, UsageError } from '../errors.ts'
import { collect, collectFilter, repeated, wholeNumber } from './arguments.ts'
import type { BackfillOptions } from './commands/backfill.ts'
import type { ExportOptions } from './commands/export.ts'
import type { ForgetOptions } from './commands/forget.ts'
import type { QueryOptions } from './commands/query.ts'
import type { SandboxCommandOptions } from './commands/sandbox.ts'
import type { StatusOptions } from './commands/status.ts'
import type { SyncOptions } from './commands/sync.ts'
import type { VerifyCommandOptions } from './commands/verify.ts'
import type { Globals } from './context.ts'
import { exitCodeOf } from './exit-code.ts'
import type { Runtime } from './runtime.ts'
import { version } from './version.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Reads the command line, runs the command and returns the exit code of the interface's table. A command's own module is
 * loaded when it is run, so that a small one does not wait for what it does not need.
 */
export async function runProgram(argv: readonly string[], runtime: Runtime): Promise<number> {
  let exitCode = 0
  const program = createProgram(runtime)
  const define = definer(program, (code) => {
    exitCode = code
  })
  defineWorkers(define, runtime)
  defineReaders(define, runtime)
  defineKeepers(define, runtime)
  defineHelpers(define, runtime)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    return report(error, runtime)
  }
}

function report(error: unknown, { stderr }: Runtime): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || (error instanceof Error && error.name === 'ConfigError')) {
    stderr.write(`${error.message}\n`)
    return 2
  }
  if (error instanceof KnownError) {
    stderr.write(`${error.code}: ${error.message}\n`)
    return exitCodeOf(error)
  }
  stderr.write(`INTERNAL: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return 1
}

function createProgram({ stdout, stderr }: Runtime): Command {
  return new Command('admin-mirror')
    .description("Keeps a faithful copy of an Administration API's lists in a local SQLite file.")
    .version(version(), '--version')
    .helpOption('--help', 'show help')
    .option('--config <file>', 'configuration file (else ADMIN_MIRROR_CONFIG, else config/admin-mirror.yaml)')
    .addOption(new Option('--log-level <level>', 'how much to log').choices(LEVELS).default('info'))
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
}

/** Begins a command; `run` is what it does with the options for all commands, its arguments and its own options. */
type Define = (name: string, description: string) => { command: Command; run: SetAction }
type SetAction = <A extends unknown[]>(action: (globals: Globals, ...args: A) => Promise<number>) => void

function definer(program: Command, setExitCode: (code: number) => void): Define {
  return (name, description) => {
    const command = program.command(name, { hidden: description === '' })
    command.description(description).helpOption('--help', 'show help').exitOverride()
    const run: SetAction = <A extends unknown[]>(
      action: (globals: Globals, ...args: A) => Promise<number>,
    ) => {
      command.action(async (...args: unknown[]) => {
        // commander hands over the arguments, the options, and last the command itself.
        setExitCode(await action(program.opts<Globals>(), ...(args.slice(0, -1) as A)))
      })
    }
    return { command, run }
  }
}

const orgOption = () => repeated('--org <org>', "an organization's name or UUID", 'all')
const collectionOption = () => repeated('--collection <name>', 'a collection', 'all')
const waitOption = () => new Option('--wait', 'wait for jobs that another process is working on')

/** The commands that walk lists. */
function defineWorkers(define: Define, runtime: Runtime): void {
  const start = define(
    'start',
    "run every organization's jobs on its schedule, until SIGTERM, SIGINT or SIGHUP",
  )
  start.run(async (globals) => (await import('./commands/start.ts')).start(runtime, globals))

  const sync = define('sync', 'run the jobs once, now; unfinished walks go on where they stopped')
  sync.command
    .addOption(orgOption())
    .addOption(collectionOption())
    .option('--accept-removals', 'lift the brake on removals for this command')
    .option('--accept-address', 'take api.baseUrl for another address of the API that the mirror holds')
    .addOption(waitOption())
  sync.run(async (globals, options: SyncOptions) =>
    (await import('./commands/sync.ts')).sync(runtime, globals, options),
  )

  const backfill = define('backfill', 'walk from the first page, whatever the checkpoint of a sync says')
  backfill.command
    .addOption(repeated('--org <org>', "an organization's name or UUID", 'none, and at least one is needed'))
    .addOption(collectionOption())
    .addOption(
      new Option('--filter <K=V>', 'a filter on top of the configured ones (may be repeated)')
        .argParser(collectFilter)
        .default([], 'none'),
    )
    .option('--from-page <n>', 'begin at this page', wholeNumber(1))
    .option('--restart', 'begin again instead of going on with the same backfill')
    .addOption(waitOption())
  backfill.run(async (globals, options: BackfillOptions) =>
    (await import('./commands/backfill.ts')).backfill(runtime, globals, options),
  )
}

/** The commands that hold the mirror against the API, or against itself. */
function defineKeepers(define: Define, runtime: Runtime): void {
  const verify = define('verify', 'walk the lists and compare them with the mirror, writing no rows')
  verify.command.addOption(orgOption()).addOption(collectionOption()).addOption(waitOption())
  verify.run(async (globals, options: VerifyCommandOptions) =>
    (await import('./commands/verify.ts')).verify(runtime, globals, options),
  )

  const rebuild = define('rebuild', 'make the typed tables and the views anew from the raw rows')
  rebuild.command.argument('[collection...]', 'collections (default: all)')
  rebuild.run(async (globals, collections: string[]) =>
    (await import('./commands/rebuild.ts')).rebuild(runtime, globals, collections),
  )

  const forget = define('forget', 'delete everything the mirror holds about an organization, or a list of it')
  forget.command
    .addOption(
      new Option('--org <org>', "an organization's name or UUID").argParser(collect).default([], 'none'),
    )
    .addOption(collectionOption())
    .option('--yes', 'delete it; without, it is only said what would go')
  forget.run(async (globals, options: ForgetOptions) =>
    (await import('./commands/forget.ts')).forget(runtime, globals, options),
  )
}

/** The commands that look at the mirror. */
function defineReaders(define: Define, runtime: Runtime): void {
  const status = define('status', 'how fresh each list is, what went wrong, and what to type next')
  status.command
    .option('--json', 'as JSON')
    .option('--max-age <duration>', 'exit with 1 when a list is older (5m, 24h)')
  status.run(async (globals, options: StatusOptions) =>
    (await import('./commands/status.ts')).status(runtime, globals, options),
  )

  const query = define('query', 'read-only SQL on the mirror')
  const tableFormats = ['table', 'json', 'csv']
  query.command
    .argument('<sql>')
    .addOption(new Option('--format <format>', 'output format').choices(tableFormats).default('table'))
  query.run(async (globals, sql: string, options: QueryOptions) =>
    (await import('./commands/query.ts')).query(runtime, globals, sql, options),
  )

  const exporting = define('export', 'write the live rows of a collection')
  exporting.command
    .argument('<collection>')
    .addOption(
      new Option('--format <format>', 'output format').choices(['csv', 'ndjson']).makeOptionMandatory(),
    )
    .addOption(orgOption())
    .option('--output <file>', 'a file instead of standard output')
  exporting.run(async (globals, collection: string, options: ExportOptions) =>
    (await import('./commands/export.ts')).exportRows(runtime, globals, collection, options),
  )
}

/** The commands beside the daily work. */
function defineHelpers(define: Define, runtime: Runtime): void {
  const resume = define(
    'resume',
    'lift the hold that a refused token left, and forget a wait beyond rateLimit.maxWait',
  )
  resume.command.addOption(orgOption())
  resume.run(async (globals, options: { org: string[] }) =>
    (await import('./commands/resume.ts')).resume(runtime, globals, options),
  )

  const schema = define('schema', 'print the JSON Schema of the configuration file')
  schema.run(async () => (await import('./commands/schema.ts')).schema(runtime))

  const sandbox = define(
    'sandbox',
    'serve a made-up Administration API on loopback, to try everything without credentials',
  )
  sandbox.command
    .option('--port <n>', 'port to listen on (0: any free one)', wholeNumber(0, 65535), 0)
    .option('--orders <n>', 'orders of each organization', wholeNumber(0), 1000)
    .option('--establishments <n>', 'establishments of each organization', wholeNumber(0), 40)
    .option('--organizations <n>', 'organizations', wholeNumber(1, 1000), 2)
    .option('--requests-per-minute <n>', 'rate limit of each token (0: none)', wholeNumber(0), 60)
    .option('--seed <n>', 'the same seed gives the same data', wholeNumber(0), 1)
    .option('--live', 'orders come, change and go while it runs')
    .option('--write-config <file>', 'write a configuration that uses it')
  sandbox.run(async (_globals, options: SandboxCommandOptions) =>
    (await import('./commands/sandbox.ts')).sandbox(runtime, options),
  )

  const demo = define('demo', '')
  demo.run(async () => (await import('./commands/demo.ts')).demo(runtime, runProgram))
}
