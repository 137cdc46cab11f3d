import manifest from '../../package.json' with { type: 'json' }
import { createForgetting } from '../store/core/forget.ts'
import { createLeases } from '../store/core/leases.ts'
import { claimAddress, saveSetting } from '../store/core/settings.ts'
import { exec, type Runner } from '../store/core/sql.ts'
import { createStore } from '../store/core/store.ts'
import { makeConfigured } from '../store/core/tables.ts'
import { createTokens, makeSalt, type TokenOptions } from '../store/core/tokens.ts'
import type { OpenMirror, OpenOptions } from './mirror.ts'

/** A mirror of either kind, as its rules are run. */
export interface MirrorRunner extends Pick<TokenOptions, 'budgets' | 'holding'> {
  runner: Runner
  /** Where it is, for messages. */
  place: string
  /** Rows that `forget` deletes in one transaction. */
  forgottenAtOnce: number
}

/** What is the same on a file and on a server. Throws MirrorError, and UsageError if the mirror holds the lists of another address. */
export async function openOn(
  { runner, place, forgottenAtOnce, ...budgets }: MirrorRunner,
  { config, runtime, address }: OpenOptions,
): Promise<Pick<OpenMirror, 'run' | 'store' | 'tokens' | 'leases' | 'forgetting' | 'now'>> {
  const { dialect, isLocal, now } = runner
  const { keepRuns, collections, api } = config
  const salt = await runner.writing(function* () {
    // One worker after another: several at once could each find no address.
    if (!isLocal) yield* exec(['LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE'])
    if (address) yield* claimAddress(api.baseUrl, address === 'accept', place)
    yield* saveSetting('program', manifest.version)
    yield* makeConfigured(dialect, collections)
    return yield* makeSalt(runtime.randomHex)
  })
  const sleep = (ms: number) => runtime.sleep(ms, runtime.signal)
  const leases = createLeases({ ...runtime, runner, name: runtime.processName, now, sleep })
  return {
    run: (rule) => runner.reading(rule(dialect)),
    store: createStore({ runner, leases, baseUrl: api.baseUrl, keepRuns }),
    tokens: createTokens({ runner, salt, ...budgets }),
    leases,
    forgetting: createForgetting({ ...runner, leases, batchRows: forgottenAtOnce }),
    now,
  }
}
