import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { JobError } from '../errors.ts'
import { createForgetting, type Forgetting } from '../store/core/forget.ts'
import { createLeases, type Leases } from '../store/core/leases.ts'
import { claimAddress, saltOf } from '../store/core/settings.ts'
import { type Dialect, exec, type Rule, type Runner, timeOf } from '../store/core/sql.ts'
import type { MirrorFacts } from '../store/core/status.ts'
import { createStore } from '../store/core/store.ts'
import { makeConfigured } from '../store/core/tables.ts'
import { createTokens, register, type TokenOptions, type Tokens } from '../store/core/tokens.ts'
import type { WorkQueue } from '../store/postgres/queue.ts'
import type { Store } from '../sync/store.ts'
import type { Runtime } from './runtime.ts'

// A mirror that is open for writing.

export interface OpenOptions {
  config: Config
  runtime: Runtime
  /** Gets the long waits for a server. */
  log: Pick<Logger, 'info'>
  /** For commands that read lists: the mirror notes `api.baseUrl`, and what is configured. `accept`: even if it holds the lists of another address. */
  address?: 'claim' | 'accept'
}

/** Each method may throw MirrorError. */
export interface OpenMirror extends Pick<Database, 'probe' | 'facts' | 'openQueue' | 'close'> {
  /** Why lists of the configuration cannot be kept in it. */
  refusals: readonly JobError[]
  /** Runs a rule of the store that only reads. */
  read<T>(rule: (dialect: Dialect) => Rule<T>): Promise<T>
  /** Runs a rule in a transaction. */
  write: Runner['writing']
  store: Store
  tokens: Tokens
  leases: Leases
  forgetting: Forgetting
  /** The clock that all processes on the mirror share. Epoch milliseconds. */
  now: () => number
}

/** What a file and a server do each in its own way. */
export interface Database extends Pick<TokenOptions, 'budgets'> {
  runner: Runner
  /** Why the mirror cannot be written now; null: it can. Throws MirrorError where it cannot be read. */
  probe(): Promise<string | null>
  facts(): Promise<MirrorFacts>
  /** Of a mirror that several workers share: opens the queue that divides the work. `onTrouble` gets errors of its maintenance. */
  openQueue?: (onTrouble: (error: unknown) => void) => Promise<WorkQueue>
  close(): Promise<void>
}

/** Opens the mirror, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openMirror({ config, runtime, log, address }: OpenOptions): Promise<OpenMirror> {
  const { postgres, keepRuns, collections, organizations, api } = config
  const database = postgres
    ? await (await import('./postgres.ts')).openServer(postgres, runtime, log)
    : await (await import('./file.ts')).openFile(config.database, runtime)
  const { runner, budgets } = database
  const { dialect, isLocal, now } = runner
  try {
    const { salt, refusals } = await runner.writing(function* () {
      // One worker after another: several at once could each find no address.
      if (!isLocal) yield* exec(['LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE'])
      if (address) {
        yield* claimAddress(api.baseUrl, address === 'accept', config.database)
        yield* register(dialect, organizations)
      }
      return {
        refusals: yield* makeConfigured(dialect, collections, timeOf(now())),
        salt: yield* saltOf(runtime.randomHex),
      }
    })
    const sleep = (ms: number) => runtime.sleep(ms, runtime.signal)
    const leases = createLeases({ ...runtime, runner, name: runtime.processName, now, sleep })
    return {
      ...database,
      refusals,
      read: (rule) => runner.reading(rule(dialect)),
      write: runner.writing,
      store: createStore({ runner, leases, baseUrl: api.baseUrl, keepRuns }),
      tokens: createTokens({ runner, salt, budgets }),
      leases,
      forgetting: createForgetting(runner, leases),
      now,
      async close() {
        await leases.close()
        await database.close()
      },
    }
  } catch (error) {
    await database.close().catch(() => {})
    throw error
  }
}
