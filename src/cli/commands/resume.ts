import { printable } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import type { Invocation } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'
import { inMirror } from '../session.ts'

/** `resume`: lifts the hold that a refused token left, for all that use it, and forgets waits of the rate limit. Needs no token. */
export async function run(runtime: Invocation, { org }: { org: string[] }): Promise<number> {
  const config = readConfig(runtime, 'leave')
  const ids = selectOrganizations(config, org).map(({ id }) => id)
  const lifted = await inMirror(runtime, { config }, ({ tokens }) => tokens.resume(ids))
  const names = lifted.map((name) => printable(name, 80)).join(', ')
  // The token that a process is refused for may be another one than the organization used last.
  const others =
    org.length === 0 ? '' : '; if a token is still held, for all organizations: admin-mirror resume'
  runtime.stderr.write(
    lifted.length === 0
      ? `no organization was held; if there was a wait beyond rateLimit.maxWait, it is forgotten${others}\n`
      : // Scheduled runs that the hold prevented are not made up for.
        `no longer held: ${names}; to read their lists before their next time: admin-mirror sync\n`,
  )
  return 0
}
