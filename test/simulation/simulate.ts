import type { ErrorCode } from '../../src/errors.ts'
import { createVirtualClock } from './clock.ts'
import { type Command, SYNC } from './commands.ts'
import type { Ground } from './ground.ts'
import type { Happening } from './happening.ts'
import { createOracle } from './oracle/oracle.ts'
import type { Mistake } from './planted.ts'
import { createStory } from './story.ts'
import { createWorld } from './world.ts'

/** Far more than any list takes until its run ends, or its process. A long history has many of these. */
const MOST_TICKS = 200_000

const MINUTE = 60_000
const DAY = 86_400_000

/**
 * Lives through the history of a seed, with a mistake in the program or none. The same seed always has the same history. `complaint`: the promise
 * that was broken first; null where all is well.
 */
export async function simulate(seed: number, ground: Ground, mistake: Mistake) {
  const history = ground.historyOf(seed)
  const { setting, lists } = history
  const clock = createVirtualClock(history.startAt)
  const { now } = clock
  const plot = await ground.lay(seed, {
    clock,
    isLocked: () => world.isLocked(),
    onCommit: (process) => tell({ kind: 'committed', process }),
  })
  /** The first one counts: what comes after it may follow from it. */
  const complaints: { what: string; job?: string | undefined }[] = []
  const complain = (what: string, job?: string) => complaints.push({ what, job })
  const story = createStory(now, setting.tenants)
  /** How the jobs ended; null for success. */
  const ends: (ErrorCode | null)[] = []
  const tell = (happening: Happening) => {
    story.tell(happening)
    world.hear(happening)
    if (happening.kind === 'job ended') ends.push(happening.code)
    if (complaints.length === 0) oracle.hear(happening)
  }
  const world = createWorld({ history, mistake, mirror: plot.config, clock, tell, complain })
  const { tokenOf, wasLockedSince } = world
  const { note, count } = story
  const oracle = createOracle(
    { ...clock, setting, mirror: plot.reader, tokenOf, wasLockedSince, complain, note },
    lists,
  )

  /** Shows that a long history still gets on. */
  const progress = () => count('ended', 'killed', 'job ended')

  async function untilQuiet(isDone: () => boolean): Promise<void> {
    let [ticks, before] = [0, progress()]
    for (;;) {
      await ground.settle()
      if (complaints.length > 0 || (isDone() && world.living().length === 0)) return
      ticks = progress() === before ? ticks + 1 : 0
      before = progress()
      if (ticks > MOST_TICKS) throw new Error('the history does not end')
      if (!clock.tick()) throw new Error(`${world.living().length} processes wait for nothing`)
    }
  }

  async function runAtPeace(command: Command, afterMs: number): Promise<void> {
    let isStarted = false
    ends.length = 0
    clock.after(afterMs, () => {
      isStarted = true
      world.relent()
      tell({ kind: 'start', command, blows: [] })
    })
    await untilQuiet(() => isStarted)
    const failed = ends.filter((code) => code !== null)
    if (failed.length > 0) complain(`${command.kind} fails though all is well: ${failed.join(', ')}`)
  }

  /** All is well from now on: whatever happened before, a sync by hand makes mirror and list equal. */
  async function comeToRest(): Promise<void> {
    if (count('answer 401') > 0) await runAtPeace({ kind: 'resume', org: [] }, MINUTE)
    const goneOnWith = count('walk gone on with')
    // Where the server may have asked for a long silence, that is over by then.
    await runAtPeace(SYNC, count('answer 429', 'answer 503') > 0 ? DAY : MINUTE)
    // A walk that began before knows nothing of what changed behind it.
    if (count('walk gone on with') > goneOnWith) await runAtPeace(SYNC, MINUTE)
    const isApart = () => oracle.difference(world.filters()) !== null
    // What is gone from a list has to be missed by two walks.
    if (isApart()) await runAtPeace(SYNC, MINUTE)
    if (isApart()) await runAtPeace({ ...SYNC, acceptsRemovals: true }, MINUTE)
    if (complaints.length === 0) oracle.atRest(plot.folder, world.tokens(), world.filters())
  }

  let left = history.deeds.length
  for (const { at, deed } of history.deeds)
    clock.after(at, () => {
      left--
      tell(deed)
    })
  try {
    await untilQuiet(() => left === 0)
    if (complaints.length === 0) await comeToRest()
  } catch (error) {
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  // Whoever still lives must not disturb the next history.
  for (const process of world.living()) process.exit()
  plot.clear()
  return { complaint: complaints[0] ?? null, story }
}
