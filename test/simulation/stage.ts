import type { ErrorCode } from '../../src/errors.ts'
import { createVirtualClock, createWallClock, type VirtualClock } from './clock.ts'
import { type Counter, createCounter } from './counts.ts'
import type { Ground } from './ground.ts'
import { type Happening, listenWith } from './happening.ts'
import type { History } from './history.ts'
import { createOracle } from './oracle/oracle.ts'
import type { Mistake } from './planted-bug.ts'
import { createStory, type Story } from './story.ts'
import { createWorld, type World } from './world.ts'

export interface Complaint {
  what: string
  job: string | undefined
}

/** A world with everybody who looks on: the oracle, the story, the counts. */
export interface Stage {
  world: World
  clock: VirtualClock
  /** How many jobs and processes have ended: what shows that a long history still gets on. */
  progress(): number
  counter: Counter
  story: Story
  /** The first one counts: what comes after it may follow from it. */
  complaints: Complaint[]
  complain(what: string): void
  /** How the jobs ended since this was asked last; null for success. */
  takeEnds(): (ErrorCode | null)[]
  /** How some list and its mirror differ; null where all are equal. */
  difference(): string | null
  /** The oracle's last look. */
  lookAtRest(): void
  close(): void
}

export async function setStage(history: History, ground: Ground, mistake: Mistake): Promise<Stage> {
  const { setting, lists, startAt } = history
  const plot = await ground.lay(history.seed)
  const clock = createVirtualClock(startAt, plot.settle)
  const wall = createWallClock(clock)
  const { now } = clock
  const complaints: Complaint[] = []
  const complain = (what: string, job?: string) => complaints.push({ what, job })
  const story = createStory({ now, startAt, shorten: shortening(setting.tenants) })
  const counter = createCounter()
  const ends: (ErrorCode | null)[] = []
  let progress = 0
  const noteEnd = listenWith({
    ended: () => progress++,
    killed: () => progress++,
    'job ended'({ result }) {
      progress++
      ends.push(result.error?.code ?? null)
    },
  })
  const tell = (happening: Happening) => {
    for (const listener of [story.tell, counter.tell, noteEnd]) listener(happening)
    if (complaints.length === 0) oracle.tell(happening)
  }
  const world = createWorld({ history, mistake, mirror: plot.config, clock, wall, tell, complain })
  const mirror = plot.openReader()
  const { tokenOf, wasLockedSince } = world
  const { note } = counter
  const oracle = createOracle({ now, wall, setting, mirror, tokenOf, wasLockedSince, complain, note }, lists)
  plot.watch(world, { clock, wall }, (process) => tell({ kind: 'committed', process }))
  return {
    world,
    clock,
    progress: () => progress,
    counter,
    story,
    complaints,
    complain,
    takeEnds: () => ends.splice(0),
    difference: () => oracle.difference(world.filters()),
    lookAtRest: () => oracle.atRest(plot.folder, world.tokens(), world.filters()),
    close() {
      world.end()
      mirror.close()
      ground.clear(plot)
    },
  }
}

function shortening(tenants: readonly { id: string; name: string }[]): (text: string) => string {
  return (text) => tenants.reduce((shorter, { id, name }) => shorter.replaceAll(id, name), text)
}
