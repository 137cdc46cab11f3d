import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { KnownError, UsageError } from '../errors.ts'
import { exitCodeOf } from './exit-code.ts'
import type { Runtime } from './runtime.ts'
import { version } from './version.ts'

/** What every command is told beside its own options. */
export interface Globals {
  config?: string
  logLevel: string
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Reads the command line, runs the command and returns the exit code of the interface's table. A command's own module is
 * loaded when it is run, so that a small one does not wait for what it does not need.
 */
export async function runProgram(argv: readonly string[], runtime: Runtime): Promise<number> {
  let exitCode = 0
  const program = createProgram(runtime, (code) => {
    exitCode = code
  })
  try {
    if (runtime.env.NODE_DEBUG) {
      throw new UsageError(
        'NODE_DEBUG is set: Node itself would print request headers, and the token with them. Unset it',
      )
    }
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    return report(error, runtime)
  }
}

function report(error: unknown, runtime: Runtime): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || (error instanceof Error && error.name === 'ConfigError')) {
    runtime.stderr.write(`${error.message}\n`)
    return 2
  }
  if (error instanceof KnownError) {
    runtime.stderr.write(`${error.code}: ${error.message}\n`)
    return exitCodeOf(error)
  }
  runtime.stderr.write(
    `INTERNAL: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  return 1
}

function createProgram(runtime: Runtime, setExitCode: (code: number) => void): Command {
  const program = new Command('admin-mirror')
    .description("Keeps a faithful copy of an Administration API's lists in a local SQLite file.")
    .version(version(), '--version')
    .helpOption('--help', 'show help')
    .addOption(
      new Option(
        '--config <file>',
        'configuration file (else ADMIN_MIRROR_CONFIG, else config/admin-mirror.yaml)',
      ),
    )
    .addOption(new Option('--log-level <level>', 'how much to log').choices(LEVELS).default('info'))
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => runtime.stdout.write(text),
      writeErr: (text) => runtime.stderr.write(text),
    })

  /** Registers a command whose module exports `run(runtime, globals, ...)` and returns the exit code. */
  function define(name: string, description: string): Command {
    return program.command(name).description(description).helpOption('--help', 'show help').exitOverride()
  }

  function runs<A extends unknown[]>(
    command: Command,
    run: (globals: Globals, ...args: A) => Promise<number>,
  ): Command {
    return command.action(async (...args: unknown[]) => {
      // commander hands over the arguments, the options, and last the command itself.
      setExitCode(await run(program.opts<Globals>(), ...(args.slice(0, -1) as A)))
    })
  }

  runs(
    define('start', "run every organization's jobs on its schedule, until SIGTERM or SIGINT"),
    async (globals, _options: object) => (await import('./commands/start.ts')).start(runtime, globals),
  )
  runs(
    withJobs(define('sync', 'run the jobs once, now; unfinished walks go on where they stopped'))
      .option('--accept-removals', 'lift the brake on removals for this command')
      .option('--wait', 'wait for jobs that another process is working on'),
    async (globals, options: JobSelection & { acceptRemovals?: boolean }) =>
      (await import('./commands/sync.ts')).sync(runtime, globals, options),
  )
  runs(
    withJobs(define('backfill', 'walk from the first page, whatever the checkpoint of a sync says'))
      .option('--filter <K=V>', 'a filter on top of the configured ones (may be repeated)', collectFilter, [])
      .option('--from-page <n>', 'begin at this page', wholeNumber(1))
      .option('--restart', 'begin again instead of going on with the same backfill')
      .option('--wait', 'wait for jobs that another process is working on'),
    async (
      globals,
      options: JobSelection & { filter: [string, string][]; fromPage?: number; restart?: boolean },
    ) => (await import('./commands/backfill.ts')).backfill(runtime, globals, options),
  )
  runs(
    define('status', 'how fresh each list is, what went wrong, and what to type next')
      .option('--json', 'as JSON')
      .option('--max-age <duration>', 'exit with 1 when a list is older (5m, 24h)'),
    async (globals, options: { json?: boolean; maxAge?: string }) =>
      (await import('./commands/status.ts')).status(runtime, globals, options),
  )
  runs(
    define('query', 'read-only SQL on the mirror')
      .argument('<sql>')
      .addOption(
        new Option('--format <format>', 'output format').choices(['table', 'json', 'csv']).default('table'),
      ),
    async (globals, sql: string, options: { format: 'table' | 'json' | 'csv' }) =>
      (await import('./commands/query.ts')).query(runtime, globals, sql, options),
  )
  runs(
    define('export', 'write the live rows of a collection')
      .argument('<collection>')
      .addOption(
        new Option('--format <format>', 'output format').choices(['csv', 'ndjson']).makeOptionMandatory(),
      )
      .option('--org <org>', "an organization's name or UUID (may be repeated)", collect, [])
      .option('--output <file>', 'a file instead of standard output'),
    async (
      globals,
      collection: string,
      options: { format: 'csv' | 'ndjson'; org: string[]; output?: string },
    ) => (await import('./commands/export.ts')).exportRows(runtime, globals, collection, options),
  )
  runs(
    define(
      'resume',
      'lift the hold that a refused token left, and forget a wait beyond rateLimit.maxWait',
    ).option('--org <org>', "an organization's name or UUID (may be repeated)", collect, []),
    async (globals, options: { org: string[] }) =>
      (await import('./commands/resume.ts')).resume(runtime, globals, options),
  )
  runs(define('schema', 'print the JSON Schema of the configuration file'), async () =>
    (await import('./commands/schema.ts')).schema(runtime),
  )
  runs(
    define('sandbox', 'serve a made-up Administration API on loopback, to try everything without credentials')
      .option('--port <n>', 'port to listen on (0: any free one)', wholeNumber(0, 65535), 0)
      .option('--orders <n>', 'orders of each organization', wholeNumber(0), 1000)
      .option('--establishments <n>', 'establishments of each organization', wholeNumber(0), 40)
      .option('--organizations <n>', 'organizations', wholeNumber(1, 1000), 2)
      .option('--requests-per-minute <n>', 'rate limit of each token (0: none)', wholeNumber(0), 60)
      .option('--seed <n>', 'the same seed gives the same data', wholeNumber(0), 1)
      .option('--live', 'orders come, change and go while it runs')
      .option('--write-config <file>', 'write a configuration that uses it'),
    async (_globals, options: SandboxCommandOptions) =>
      (await import('./commands/sandbox.ts')).sandbox(runtime, options),
  )
  runs(program.command('demo', { hidden: true }).exitOverride(), async () =>
    (await import('./commands/demo.ts')).demo(runtime),
  )
  return program
}

export interface JobSelection {
  org: string[]
  collection: string[]
}

export interface SandboxCommandOptions {
  port: number
  orders: number
  establishments: number
  organizations: number
  requestsPerMinute: number
  seed: number
  live?: boolean
  writeConfig?: string
}

function withJobs(command: Command): Command {
  return command
    .option('--org <org>', "an organization's name or UUID (may be repeated)", collect, [])
    .option('--collection <name>', 'a collection (may be repeated)', collect, [])
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value]
}

function collectFilter(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}

function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (value: string): number => {
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    throw new InvalidArgumentError(
      `Expected a whole number from ${least}${most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''}.`,
    )
  }
}
