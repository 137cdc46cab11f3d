import type { ErrorCode } from '../../src/errors.ts'
import { createVirtualClock, createWallClock } from './clock.ts'
import { type Command, SYNC } from './commands.ts'
import type { Ground } from './ground.ts'
import type { Happening } from './happening.ts'
import type { History } from './history.ts'
import { createOracle } from './oracle/oracle.ts'
import type { Mistake } from './planted.ts'
import { createCounter, createStory } from './story.ts'
import { createWorld } from './world.ts'

/** A world with everybody who looks on: the oracle, the story, the counts. */
type Stage = Awaited<ReturnType<typeof setStage>>

async function setStage(history: Omit<History, 'deeds'>, ground: Ground, mistake: Mistake) {
  const { setting, lists, startAt } = history
  const plot = await ground.lay(history.seed)
  const clock = createVirtualClock(startAt, plot.settle)
  const wall = createWallClock(clock)
  const { now } = clock
  /** The first one counts: what comes after it may follow from it. */
  const complaints: { what: string; job?: string | undefined }[] = []
  const complain = (what: string, job?: string) => complaints.push({ what, job })
  const story = createStory(now, (text) =>
    setting.tenants.reduce((shorter, { id, name }) => shorter.replaceAll(id, name), text),
  )
  const counter = createCounter()
  const ends: (ErrorCode | null)[] = []
  const tell = (happening: Happening) => {
    story.tell(happening)
    counter.tell(happening)
    if (happening.kind === 'job ended') ends.push(happening.code)
    if (complaints.length === 0) oracle.tell(happening)
  }
  const count = (what: string) => counter.counts[what] ?? 0
  const world = createWorld({ history, mistake, mirror: plot.config, clock, wall, tell, complain })
  const mirror = plot.openReader()
  const { tokenOf, wasLockedSince } = world
  const { note } = counter
  const oracle = createOracle({ now, wall, setting, mirror, tokenOf, wasLockedSince, complain, note }, lists)
  plot.watch(world, { clock, wall }, (process) => tell({ kind: 'committed', process }))
  return {
    world,
    clock,
    counts: counter.counts,
    count,
    story,
    complaints,
    /** How many jobs and processes have ended: what shows that a long history still gets on. */
    progress: () => count('ended') + count('killed') + count('job ended'),
    /** How the jobs ended since this was asked last; null for success. */
    takeEnds: () => ends.splice(0),
    /** How some list and its mirror differ; null where all are equal. */
    difference: () => oracle.difference(world.filters()),
    lookAtRest: () => oracle.atRest(plot.folder, world.tokens(), world.filters()),
    close() {
      world.end()
      mirror.close()
      ground.clear(plot)
    },
  }
}

/** Far more than any list takes until its run ends, or its process. A long history has many of these. */
const MOST_TICKS = 50_000

const MINUTE = 60_000
const DAY = 86_400_000

/**
 * Lives through the history of a seed, with a mistake in the program or none. The same seed always has the same history. `complaint`: the promise
 * that was broken first; null where all is well.
 */
export async function simulate(seed: number, ground: Ground, mistake: Mistake) {
  const { deeds, ...history } = ground.historyOf(seed)
  const stage = await setStage(history, ground, mistake)
  const { complaints, story, counts, clock, world } = stage
  let left = deeds.length
  for (const deed of deeds)
    clock.after(deed.at, () => {
      left--
      if ('start' in deed) world.start(deed.start)
      else deed.act(world)
    })
  try {
    await untilQuiet(stage, () => left === 0)
    if (complaints.length === 0) await comeToRest(stage)
  } catch (error) {
    complaints.push({ what: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
  stage.close()
  const jobs = complaints.flatMap(({ job }) => job ?? [])
  const complaint = complaints[0]?.what ?? null
  return { complaint, story: () => story.shortened(jobs), whole: story.whole, counts }
}

async function untilQuiet(
  { world, clock, complaints, progress }: Stage,
  isDone: () => boolean,
): Promise<void> {
  let [ticks, before] = [0, progress()]
  for (;;) {
    await clock.settle()
    if (complaints.length > 0 || (isDone() && world.living() === 0)) return
    ticks = progress() === before ? ticks + 1 : 0
    before = progress()
    if (ticks > MOST_TICKS) throw new Error('the history does not end')
    if (!clock.tick()) throw new Error(`${world.living()} processes wait for nothing`)
  }
}

/** All is well from now on: whatever happened before, a sync by hand makes mirror and list equal. */
async function comeToRest(stage: Stage): Promise<void> {
  const { count } = stage
  if (count('answer 401') > 0) await runAtPeace(stage, { kind: 'resume', org: [] }, MINUTE)
  // Where the server may have asked for a long silence, that is over by then.
  const pauseMs = count('answer 429') + count('answer 503') > 0 ? DAY : MINUTE
  const goneOnWith = count('walk gone on with')
  await runAtPeace(stage, SYNC, pauseMs)
  // A walk that began before knows nothing of what changed behind it.
  if (count('walk gone on with') > goneOnWith) await runAtPeace(stage, SYNC, MINUTE)
  // What is gone from a list has to be missed by two walks.
  if (stage.difference()) await runAtPeace(stage, SYNC, MINUTE)
  if (stage.difference()) await runAtPeace(stage, { ...SYNC, acceptsRemovals: true }, MINUTE)
  if (stage.complaints.length === 0) stage.lookAtRest()
}

async function runAtPeace(stage: Stage, command: Command, afterMs: number): Promise<void> {
  const { clock, world } = stage
  let isStarted = false
  stage.takeEnds()
  clock.after(afterMs, () => {
    isStarted = true
    world.server.relent()
    world.start({ command, fate: null })
  })
  await untilQuiet(stage, () => isStarted)
  const failed = stage.takeEnds().filter((code) => code !== null)
  if (failed.length > 0)
    stage.complaints.push({ what: `${command.kind} fails though all is well: ${failed.join(', ')}` })
}
