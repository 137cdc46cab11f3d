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
  const config = readConfig(runtime, globals, 'leave')
  const ids = selectOrganizations(config, org).map(({ id }) => id)
  const say = (text: string) => runtime.stderr.write(`${text}\n`)
  if (!(await isMade(config, runtime))) {
    say(`there is nothing to resume: there is no mirror at ${config.database} yet`)
    return 0
  }
  const mirror = await openToChange(config, runtime, globals, false)
  let lifted: string[]
  try {
    lifted = await mirror.tokens.resume(ids)
  } finally {
    await mirror.close()
  }
  if (lifted.length === 0) say('no organization was held; waits for the rate limit are forgotten')
  else {
    const names = lifted.map((name) => printable(name, 80)).join(', ')
    // Scheduled runs that the hold prevented are not made up for.
    const sync = ['admin-mirror sync', ...org.flatMap((name) => ['--org', shellWord(name)])].join(' ')
    say(`no longer held: ${names}; to read their lists before their next time: ${sync}`)
  }
  const { daemon } = await readStatus(runtime, { database: config.database, config })
  const restart = restartText(daemon.processes)
  if (restart !== null) say(`${restart}, and sends the token that it has`)
  return 0
}
