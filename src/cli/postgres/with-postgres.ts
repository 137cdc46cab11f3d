import type { Config } from '../../config/config.ts'
import { InterruptedError } from '../../errors.ts'
import { createLeases, type Leases } from '../../store/postgres/leases.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgres, type PostgresMirror } from './open.ts'

/** A worker's name is unique, so that nobody takes one for another. */
export function workerName({ host, pid, newToken }: Runtime): string {
  return `${host}-${pid}-${newToken().slice(0, 12)}`
}

/** Runs a command that changes the mirror and sends nothing. Returns its exit code, or that of the signal that stopped it. */
export async function withPostgres(
  config: Pick<Config, 'postgres' | 'collections'>,
  runtime: Runtime,
  work: (mirror: PostgresMirror & { leases: Leases }) => Promise<number>,
): Promise<number> {
  const { signal, stderr } = runtime
  const mirror = await openPostgres(config, runtime, (message) => stderr.write(`${message}\n`))
  try {
    const leases = await createLeases(mirror.server, workerName(runtime))
    try {
      return await work({ ...mirror, leases })
    } finally {
      await leases.close()
    }
  } catch (error) {
    if (!(error instanceof InterruptedError) || !signal.aborted) throw error
    stderr.write(`${error.message}\n`)
    return exitCodeOfStop(signal)
  } finally {
    await mirror.close()
  }
}
