import { createVirtualClock, type VirtualClock } from './clock.ts'
import type { Command } from './commands.ts'
import { type Counts, createCounter } from './counts.ts'
import type { Ground } from './ground.ts'
import type { Happening } from './happening.ts'
import { makeHistory } from './history.ts'
import { openMirrorReader } from './oracle/context.ts'
import { createOracle } from './oracle/oracle.ts'
import { watchSqlite } from './sqlite-steps.ts'
import { createStory, type Story } from './story.ts'
import { createWorld, type World } from './world.ts'

export interface Outcome {
  seed: number
  /** Promises that were broken, the first one first; none where all is well. */
  complaints: string[]
  /** What happened: shortened to what led to the first complaint. */
  story: string
  /** All that happened. */
  whole: () => string
  counts: Counts
}

/** Far more than any history has. */
const MOST_TICKS = 50_000

const MINUTE = 60_000
const DAY = 86_400_000

/** Lives through the history of a seed. The same seed always has the same history. */
export async function simulate(seed: number, ground: Ground): Promise<Outcome> {
  const history = makeHistory(seed)
  const { folder, file } = ground.lay(seed)
  const clock = createVirtualClock(history.startAt)
  const { now } = clock
  const complaints: { what: string; job: string | undefined }[] = []
  const complain = (what: string, job?: string) => complaints.push({ what, job })
  const story = createStory({ now, startAt: history.startAt, shorten: shortening(history.setting.tenants) })
  const counter = createCounter()
  const tell = (happening: Happening) => {
    story.tell(happening)
    counter.tell(happening)
    if (happening.kind === 'job ended') results.push(happening.result.error?.code ?? null)
    if (complaints.length === 0) oracle.tell(happening)
  }
  const results: (string | null)[] = []
  const world = createWorld({ history, file, clock, tell, complain })
  const mirror = openMirrorReader(file)
  const { setting, lists } = history
  const { tokenOf, wasLockedSince } = world
  const oracle = createOracle({ now, setting, mirror, tokenOf, wasLockedSince, complain }, lists)
  watchSqlite({
    isLocked: (connection) => connection.name === file && world.isLocked(),
    onCommit: (process) => tell({ kind: 'committed', process }),
  })
  try {
    await liveThrough(world, clock, history.deeds, complaints)
    results.splice(0)
    if (complaints.length === 0) await comeToRest(world, clock, counter.counts(), complaints)
    const failed = results.filter((code) => code !== null)
    if (complaints.length === 0 && failed.length > 0) complain(`the last sync failed: ${failed.join(', ')}`)
    if (complaints.length === 0) oracle.atRest(folder, world.tokens())
  } catch (error) {
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  mirror.close()
  ground.clear(folder)
  return toOutcome(seed, complaints, story, counter.counts())
}

type Complaints = readonly { what: string; job: string | undefined }[]

function toOutcome(seed: number, complaints: Complaints, story: Story, counts: Counts): Outcome {
  const jobs = complaints.flatMap(({ job }) => (job === undefined ? [] : [job]))
  return {
    seed,
    complaints: complaints.map(({ what }) => what),
    story: complaints.length === 0 ? '' : story.shortened(jobs),
    whole: story.whole,
    counts,
  }
}

async function liveThrough(
  world: World,
  clock: VirtualClock,
  deeds: ReturnType<typeof makeHistory>['deeds'],
  complaints: Complaints,
): Promise<void> {
  let left = deeds.length
  for (const deed of deeds) {
    clock.after(deed.at, () => {
      left--
      world.act(deed.do)
    })
  }
  await untilQuiet(world, clock, () => left === 0, complaints)
}

async function untilQuiet(
  world: World,
  clock: VirtualClock,
  isDone: () => boolean,
  complaints: Complaints,
): Promise<void> {
  for (let ticks = 0; ; ticks++) {
    await clock.settle()
    if (complaints.length > 0 || (isDone() && world.living() === 0)) return
    if (ticks > MOST_TICKS) throw new Error('the history does not end')
    if (!clock.tick()) throw new Error(`${world.living()} processes wait for nothing`)
  }
}

/** All is well from now on: whatever happened before, a sync by hand makes mirror and list equal. */
async function comeToRest(
  world: World,
  clock: VirtualClock,
  counts: Counts,
  complaints: Complaints,
): Promise<void> {
  const count = (what: string) => counts[what] ?? 0
  async function run(command: Command, afterMs: number): Promise<void> {
    let isStarted = false
    clock.after(afterMs, () => {
      isStarted = true
      world.server.relent()
      world.start(command, null)
    })
    await untilQuiet(world, clock, () => isStarted, complaints)
  }

  if (count('answer 401') > 0) await run({ kind: 'resume', org: [] }, MINUTE)
  // Where the server may have asked for a long silence, that is over by then.
  const pauseMs = count('answer 429') + count('answer 503') > 0 ? DAY : MINUTE
  const goneOnWith = count('walk gone on with')
  await run({ kind: 'sync', org: [], wait: true }, pauseMs)
  // A walk that began before knows nothing of what changed behind it.
  if (count('walk gone on with') > goneOnWith) await run({ kind: 'sync', org: [], wait: true }, MINUTE)
}

function shortening(tenants: readonly { id: string; name: string }[]): (text: string) => string {
  return (text) => tenants.reduce((shorter, { id, name }) => shorter.replaceAll(id, name), text)
}
