import { restartText } from '../../report/status.ts'
import { printable, shellWord } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { isMade } from '../mirror.ts'
import { readStatus } from '../read-status.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'
import { openToChange } from '../session.ts'

/** `resume`: lifts the hold that a refused token left, and forgets waits of the rate limit. Needs no token. */
export async function run(runtime: Runtime, globals: Globals, { org }: { org: string[] }): Promise<number> {
  const { stderr } = runtime
  const config = readConfig(runtime, globals, 'leave')
  const organizations = selectOrganizations(config, org)
  if (!(await isMade(config, runtime))) {
    stderr.write(`there is nothing to resume: there is no mirror at ${config.database} yet\n`)
    return 0
  }
  const mirror = await openToChange(config, runtime, globals, false)
  let lifted: string[]
  try {
    lifted = await mirror.tokens.resume(organizations.map(({ id }) => id))
  } finally {
    await mirror.close()
  }
  if (lifted.length === 0) stderr.write('no organization was held; waits for the rate limit are forgotten\n')
  else {
    const names = lifted.map((name) => printable(name, 80)).join(', ')
    // Scheduled runs that the hold prevented are not made up for.
    const sync = ['admin-mirror sync', ...org.flatMap((name) => ['--org', shellWord(name)])].join(' ')
    stderr.write(
      `no longer held: ${names}; waits for the rate limit are forgotten; to read their lists before their next time: ${sync}\n`,
    )
  }
  const { daemon } = await readStatus(runtime, { database: config.database, config })
  const restart = restartText(daemon.processes)
  if (restart !== null) stderr.write(`${restart}, and sends the token that it has\n`)
  return 0
}
