import type { Config } from '../../src/config/config.ts'
import type { VirtualClock, WallClock } from './clock.ts'
import { type Command, runCommand } from './commands.ts'
import type { Deed } from './deeds.ts'
import type { Tell } from './happening.ts'
import type { History } from './history.ts'
import type { ListFilters } from './list.ts'
import { createNetwork } from './network.ts'
import type { Mistake } from './planted.ts'
import { cutAllOff, cutOff } from './postgres/server-steps.ts'
import { createProcess, type Fate, type SimulatedProcess, type Step } from './process.ts'
import { createRuntime } from './runtime.ts'
import { createServer, type Server } from './server.ts'
import { BASE_URL, type Newest } from './setting.ts'

export interface WorldOptions {
  history: History
  /** What is wrong with the program. */
  mistake: Mistake
  mirror: Pick<Config, 'database' | 'postgres'>
  clock: VirtualClock
  /** What all processes take for the time. */
  wall: WallClock
  tell: Tell
  complain: (what: string) => void
}

/** Processes, network and server of one history, in simulated time. */
export interface World {
  server: Server
  /** What whoever starts now is configured with. */
  filters(): ListFilters
  /** How many processes live. */
  living(): number
  start(start: Start): void
  act(deed: Deed['do']): void
  tokenOf(process: SimulatedProcess, organization: string): string
  /** All tokens that were ever configured. */
  tokens(): string[]
  isLocked(): boolean
  wasLockedSince(time: number): boolean
  /** Ends all processes that still live, so that they do not disturb the next history. */
  end(): void
}

/** How a process is started, and what happens to it then. */
export interface Start {
  command: Command
  fate: Fate
  /** At which of its steps its connections to the server are cut, and for how long it stands still then. */
  cut?: { step: Step; count: number; standsMs?: number } | null
}

/** A process that was told to stop has so long to do so. */
const STOPPING_MS = 5000

export function createWorld({ history, mistake, mirror, clock, wall, tell, complain }: WorldOptions): World {
  const { setting, random } = history
  const { now } = clock
  const current = new Map(setting.tenants.map(({ id, token }) => [id, token]))
  const everUsed = new Set(current.values())
  const atStart = new Map<SimulatedProcess, Map<string, string>>()
  const living = new Set<SimulatedProcess>()
  /** How far the clocks of processes' machines are ahead of the server's. */
  const clocksAhead = new Map<SimulatedProcess, number>()
  let lockedUntil = 0
  let started = 0
  let filters: ListFilters = {}
  let newest: Newest = 'auto'
  const { lists, serverEvents: events } = history
  const { throttle, oneUser, strangers, latencyMs, timeoutMs } = setting
  const server = createServer({
    baseUrl: BASE_URL,
    lists,
    throttle,
    oneUser,
    strangers,
    events,
    random: random.fork(),
    onChange: (job, change, movement) => tell({ kind: 'list changed', job, change, movement }),
  })
  const network = createNetwork({ clock, server, tell, random: random.fork(), timeoutMs, latencyMs })

  function tokenOf(process: SimulatedProcess, organization: string): string {
    const { tokenFile } = setting.tenants.find(({ id }) => id === organization) ?? {}
    const known = tokenFile ? current : (atStart.get(process) ?? current)
    return known.get(organization) ?? ''
  }

  function configOf(process: SimulatedProcess): Config {
    const organizations = setting.config.organizations.map((organization) => ({
      ...organization,
      collections: organization.collections.map((collection) => ({
        ...collection,
        newest,
        filters: { ...filters },
      })),
      readToken: () => tokenOf(process, organization.id),
    }))
    return { ...setting.config, ...mirror, organizations }
  }

  function start({ command, fate, cut = null }: Start): void {
    const name = `${command.kind}-${++started}`
    const byHand = command.kind !== 'start'
    const acceptsRemovals = command.kind === 'sync' && command.acceptsRemovals
    const onOwnCut = () => {
      onCut(process)
      if (cut?.standsMs) halt(process, cut.standsMs)
    }
    const process = createProcess({ name, byHand, acceptsRemovals, fate, onKill, cut, onCut: onOwnCut })
    atStart.set(process, new Map(current))
    living.add(process)
    tell({ kind: 'started', process, command: JSON.stringify({ command, fate, cut }) })
    bringDown(process, fate)
    const ownNow = () => wall.now() + (clocksAhead.get(process) ?? 0)
    const runtime = createRuntime(process, started, { clock, now: ownNow }, random.fork())
    const machine = {
      process,
      mistake,
      config: configOf(process),
      runtime,
      exchange: network.exchangeOf(process),
      tell,
    }
    const end = (error: unknown) => {
      if (!process.isAlive()) return
      process.exit()
      living.delete(process)
      tell({ kind: 'ended', process, error })
    }
    process.run(() => runCommand(machine, command)).then(() => end(null), end)
  }

  function onKill(process: SimulatedProcess, where: string): void {
    living.delete(process)
    tell({ kind: 'killed', process, where })
  }

  function onCut(process: SimulatedProcess): void {
    tell({ kind: 'cut off', process })
    cutOff(process)
  }

  /** One of those that live, as if somebody had thrown dice. */
  function oneOf(which: number): SimulatedProcess | undefined {
    const all = [...living]
    return all[which % all.length]
  }

  function halt(process: SimulatedProcess, ms: number): void {
    tell({ kind: 'halted', process, ms })
    process.halt()
    clock.after(ms, process.wakeUp)
  }

  function bringDown(process: SimulatedProcess, fate: Fate): void {
    if (fate?.kind === 'killed after') clock.after(fate.ms, process.kill)
    if (fate?.kind !== 'signalled') return
    clock.after(fate.ms, () => {
      if (!process.isAlive()) return
      tell({ kind: 'signalled', process })
      process.signal()
      const ahead = wall.now()
      function checkStopped(): void {
        // Where the clock was set back meanwhile, its waits are longer.
        const isSetBack = wall.now() < ahead + STOPPING_MS
        if (!process.isAlive() || isSetBack || process.wasHalted()) return
        // After a 401 a process writes the hold first, however long the mirror is locked: without it, the next process
        // would send the token again.
        const canStopAt = process.wasRefused() ? lockedUntil + STOPPING_MS : 0
        if (now() < canStopAt) clock.after(canStopAt - now(), checkStopped)
        else complain(`${process.name} has not stopped ${STOPPING_MS} ms after its signal`)
      }
      clock.after(STOPPING_MS, checkStopped)
    })
  }

  function act(deed: Deed['do']): void {
    switch (deed.kind) {
      case 'start':
        start(deed)
        break
      case 'server':
        server.act(deed.act)
        if (deed.act.kind !== 'list') tell({ kind: 'server', what: JSON.stringify(deed.act) })
        break
      case 'weather':
        server.setWeather(deed.faults)
        tell({ kind: 'server', what: `${deed.faults} of all requests meet a fault` })
        break
      case 'lock':
        lockedUntil = Math.max(lockedUntil, now() + deed.ms)
        tell({ kind: 'locked', ms: deed.ms })
        if (mirror.postgres) cutAllOff()
        break
      case 'cut off': {
        const process = oneOf(deed.which)
        if (process) onCut(process)
        break
      }
      case 'halt': {
        const process = oneOf(deed.which)
        if (process && deed.isCut) onCut(process)
        if (process) halt(process, deed.ms)
        break
      }
      case 'set own clock': {
        const process = oneOf(deed.which)
        if (process) clocksAhead.set(process, (clocksAhead.get(process) ?? 0) + deed.ms)
        if (process) tell({ kind: 'own clock set', process, ms: deed.ms })
        break
      }
      case 'replace token':
        replaceToken(deed.organization, deed.token)
        break
      case 'filter':
        filters = deed.filters
        tell({ kind: 'filters changed', filters })
        break
      case 'newest':
        newest = deed.newest
        tell({ kind: 'newest changed', newest })
        break
      case 'set clock':
        wall.setBack(deed.ms)
        tell({ kind: 'clock set', ms: deed.ms })
    }
  }

  function replaceToken(organization: string, after: string): void {
    const before = current.get(organization) ?? ''
    current.set(organization, after)
    everUsed.add(after)
    tell({ kind: 'token replaced', organization, before, after })
  }

  return {
    server,
    filters: () => filters,
    living: () => living.size,
    start,
    act,
    tokenOf,
    tokens: () => [...everUsed],
    isLocked: () => now() < lockedUntil,
    wasLockedSince: (time) => lockedUntil >= time,
    end() {
      for (const process of living) process.exit()
    },
  }
}
