import type { Config } from '../../config/config.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { Runtime } from '../runtime.ts'
import { isMadeOnServer, openPostgres } from './open.ts'

/** Lifts the holds of these organizations. Returns the names of those that were held; null if there is no mirror yet. */
export async function resumeOnPostgres(
  config: Config,
  runtime: Runtime,
  organizationIds: readonly string[],
): Promise<string[] | null> {
  if (!(await isMadeOnServer(config, runtime))) return null
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
