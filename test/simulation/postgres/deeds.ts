import type { Deed } from '../deeds.ts'
import { type History, makeHistory } from '../history.ts'
import { createRandom, type Random } from '../random.ts'

// A mirror on a server has troubles of its own: workers that are cut off from it, and workers that stand still meanwhile.

const CUT_AT = ['statement', 'before commit', 'after commit', 'after commit', 'request', 'answer'] as const

/** What happens to a mirror in a file, and workers that lose their connections, stand still, or both. */
export function makeServerHistory(seed: number): History {
  const history = makeHistory(seed)
  const random = createRandom(seed + 1_000_000_000)
  const deeds = history.deeds.flatMap((deed) => troubled(random, deed)).toSorted((a, b) => a.at - b.at)
  return { ...history, setting: { ...history.setting, isOnServer: true }, deeds }
}

function troubled(random: Random, deed: Deed): Deed[] {
  if (deed.do.kind !== 'start') return [deed]
  const cut = random.chance(0.35)
    ? { step: random.pick(CUT_AT), count: random.whole(1, random.pick([6, 20, 60])) }
    : null
  const deeds: Deed[] = [{ ...deed, do: { ...deed.do, cut } }, ...companions(random, deed.at)]
  const soon = () => deed.at + random.whole(0, random.pick([2000, 20_000, 200_000]))
  const which = random.whole(0, 5)
  if (random.chance(0.2)) deeds.push({ at: soon(), do: { kind: 'cut off', which } })
  if (random.chance(0.35)) {
    const at = soon()
    const ms = random.pick([500, 30_000, 120_000, 600_000])
    deeds.push({ at, do: { kind: 'halt', which, ms, isCut: random.chance(0.7) } })
    // Somebody who takes over what the other one has.
    const command = { kind: 'sync', org: [], wait: true, refresh: false, acceptsRemovals: false } as const
    if (random.chance(0.7))
      deeds.push({ at: at + random.whole(0, ms), do: { kind: 'start', command, fate: null } })
  }
  return deeds
}

/** One or two more workers that are started at about the same time, for the same lists. */
function companions(random: Random, at: number): Deed[] {
  if (random.chance(0.5)) return []
  return Array.from({ length: random.pick([1, 1, 2]) }, (): Deed => {
    const pauseMs = random.pick([5000, 300_000])
    const command = { kind: 'start', rounds: random.whole(1, 2), pauseMs } as const
    const fate = random.chance(0.3)
      ? ({ kind: 'killed after', ms: random.pick([random.whole(0, 5000), random.whole(0, 60_000)]) } as const)
      : null
    return { at: at + random.whole(0, 2000), do: { kind: 'start', command, fate } }
  })
}
