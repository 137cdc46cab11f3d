import { guarded, openForWriting } from '../../store/sqlite/file/open.ts'
import { makeConfigured } from '../../store/sqlite/tables/configured.ts'
import { createRegistry } from '../../store/sqlite/tokens.ts'
import { createLockWait, createTransact } from '../../store/sqlite/transaction.ts'
import { type Globals, readConfig } from '../context.ts'
import { isNotMadeYet } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'

/** `resume`: lifts the hold that a refused token left, and forgets waits of the rate limit. Needs no token. */
export async function resume(
  runtime: Runtime,
  globals: Globals,
  { org }: { org: string[] },
): Promise<number> {
  const config = readConfig(runtime, globals, 'leave')
  const organizations = selectOrganizations(config, org)
  if (isNotMadeYet(config.database)) {
    runtime.stderr.write(`there is nothing to resume: there is no mirror at ${config.database} yet\n`)
    return 0
  }
  const file = config.database
  const connection = await createLockWait(file, runtime)(() => openForWriting(file))
  try {
    const transact = createTransact({ ...runtime, connection, file })
    await transact(() => makeConfigured(connection, config.collections))
    const registry = guarded(file, () => createRegistry(connection, transact, runtime.newToken))
    const lifted = await registry.resume(organizations.map(({ id }) => id))
    const what = lifted.length === 0 ? 'no organization was held' : `no longer held: ${lifted.join(', ')}`
    runtime.stderr.write(`${what}; waits for the rate limit are forgotten\n`)
    return 0
  } finally {
    connection.close()
  }
}
