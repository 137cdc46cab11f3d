import type { Config } from '../../config/config.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgres } from './open.ts'

/** Lifts the holds of these organizations. Returns the names of those that were held. */
export async function resumeOnPostgres(
  config: Config,
  runtime: Runtime,
  organizationIds: readonly string[],
): Promise<string[]> {
  const { server, now, close } = await openPostgres(config, runtime, (message) =>
    runtime.stderr.write(`${message}\n`),
  )
  try {
    const tokens = await createTokens(server, now, runtime.newToken)
    return await tokens.resume(organizationIds)
  } finally {
    await close()
  }
}
