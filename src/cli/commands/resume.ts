import { translatingErrors } from '../../store/sqlite/file/open.ts'
import { createTokens } from '../../store/sqlite/tokens.ts'
import { printable } from '../../text.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { isNotMadeYet, withMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'

/** `resume`: lifts the hold that a refused token left, and forgets waits of the rate limit. Needs no token. */
export async function run(runtime: Runtime, globals: Globals, { org }: { org: string[] }): Promise<number> {
  const { stderr, newToken } = runtime
  const config = readConfig(runtime, globals, 'leave')
  const organizations = selectOrganizations(config, org)
  const ids = organizations.map(({ id }) => id)
  if (config.postgres) {
    const { resumeOnPostgres } = await import('../postgres/resume.ts')
    const lifted = await resumeOnPostgres(config, runtime, ids)
    stderr.write(lifted ? resumed(lifted) : nothingToResume(config.database))
    return 0
  }
  const file = config.database
  if (isNotMadeYet(file)) {
    stderr.write(nothingToResume(file))
    return 0
  }
  return withMirror(config, runtime, async ({ connection, transact }) => {
    const tokens = translatingErrors(file, () => createTokens(connection, transact, newToken))
    stderr.write(resumed(await tokens.resume(ids)))
    return 0
  })
}

function nothingToResume(mirror: string): string {
  return `there is nothing to resume: there is no mirror at ${mirror} yet\n`
}

function resumed(lifted: readonly string[]): string {
  const what =
    lifted.length === 0
      ? 'no organization was held'
      : `no longer held: ${lifted.map((name) => printable(name, 80)).join(', ')}`
  return `${what}; waits for the rate limit are forgotten\n`
}
