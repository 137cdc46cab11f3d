import type { Config } from '../../src/config/config.ts'
import { createRuntime, type VirtualClock, type WallClock } from './clock.ts'
import { type Command, runCommand } from './commands.ts'
import type { Tell } from './happening.ts'
import type { History } from './history.ts'
import type { ListFilters } from './list.ts'
import { createNetwork } from './network.ts'
import type { Mistake } from './planted.ts'
import { cutAllOff, cutOff } from './postgres/server-steps.ts'
import { type Cut, createProcess, type Fate, type SimulatedProcess } from './process.ts'
import { createServer } from './server.ts'
import type { Newest } from './setting.ts'

export interface WorldOptions {
  history: Omit<History, 'deeds'>
  /** What is wrong with the program. */
  mistake: Mistake
  mirror: Pick<Config, 'database' | 'postgres'>
  clock: VirtualClock
  /** What all processes take for the time. */
  wall: WallClock
  tell: Tell
  complain: (what: string) => void
}

/** How a process is started, and what happens to it then. */
export interface Start {
  command: Command
  fate: Fate
  cut?: Cut | null
}

/** A process that was told to stop has so long to do so. */
const STOPPING_MS = 5000

/** Processes, network and server of one history, in simulated time; and what people do to them. */
export type World = ReturnType<typeof createWorld>

export function createWorld({ history, mistake, mirror, clock, wall, tell, complain }: WorldOptions) {
  const { setting, random, lists, serverEvents: events } = history
  const { tenants } = setting
  const { now } = clock
  const tokens = new Map(tenants.map(({ id, token }) => [id, token]))
  const everUsed = new Set(tokens.values())
  const tokensAtStart = new Map<SimulatedProcess, Map<string, string>>()
  const living = new Set<SimulatedProcess>()
  const processes = new Map<string, SimulatedProcess>()
  /** How far the clocks of processes' machines are ahead of the server's. */
  const clocksAhead = new Map<SimulatedProcess, number>()
  /** Of whoever starts now. */
  const configured: { filters: ListFilters; newest: Newest } = { filters: {}, newest: 'auto' }
  let lockedUntil = 0
  let started = 0
  const server = createServer({
    setting,
    lists,
    events,
    random: random.fork(),
    onChange: (job, change, movement) => tell({ kind: 'list changed', job, change, movement }),
  })
  const exchangeOf = createNetwork({ setting, clock, server, tell, random: random.fork() })

  function tokenOf(process: SimulatedProcess, organization: string): string {
    const isFile = tenants.find(({ id }) => id === organization)?.tokenFile === true
    const known = isFile ? tokens : (tokensAtStart.get(process) ?? tokens)
    return known.get(organization) ?? ''
  }

  function configOf(process: SimulatedProcess): Config {
    const { newest, filters } = configured
    const organizations = setting.config.organizations.map((organization) => ({
      ...organization,
      collections: organization.collections.map((one) => ({ ...one, newest, filters: { ...filters } })),
      readToken: () => tokenOf(process, organization.id),
    }))
    return { ...setting.config, ...mirror, organizations }
  }

  function start({ command, fate, cut = null }: Start): void {
    const process: SimulatedProcess = createProcess({
      name: `${command.kind}-${++started}`,
      acceptsRemovals: command.kind === 'sync' && command.acceptsRemovals,
      fate,
      cut,
      onKill(where) {
        living.delete(process)
        tell({ kind: 'killed', process, where })
      },
      onCut() {
        dropServer(process)
        if (cut?.standsMs) standStill(process, cut.standsMs)
      },
    })
    tokensAtStart.set(process, new Map(tokens))
    living.add(process)
    tell({ kind: 'started', process, command: JSON.stringify({ command, fate, cut }) })
    if (fate?.kind === 'killed after') clock.after(fate.ms, process.kill)
    if (fate?.kind === 'signalled') clock.after(fate.ms, () => tellToStop(process))
    const machine = {
      process,
      mistake,
      config: configOf(process),
      runtime: createRuntime({
        process,
        pid: started,
        clock,
        now: () => wall.now() + (clocksAhead.get(process) ?? 0),
        random: random.fork(),
        processes,
      }),
      exchange: exchangeOf(process),
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

  function tellToStop(process: SimulatedProcess): void {
    if (!process.isAlive()) return
    tell({ kind: 'signalled', process })
    process.signal()
    const due = wall.now() + STOPPING_MS
    function checkStopped(): void {
      // Where the clock was set back meanwhile, its waits are longer.
      if (!process.isAlive() || wall.now() < due || process.was.halted) return
      // After a 401 a process writes the hold first, however long the mirror is locked: without it, the next process would send the token
      // again.
      const canStopAt = process.was.refused ? lockedUntil + STOPPING_MS : 0
      if (now() < canStopAt) clock.after(canStopAt - now(), checkStopped)
      else complain(`${process.name} has not stopped ${STOPPING_MS} ms after its signal`)
    }
    clock.after(STOPPING_MS, checkStopped)
  }

  function dropServer(process: SimulatedProcess): void {
    tell({ kind: 'cut off', process })
    cutOff(process)
  }

  function standStill(process: SimulatedProcess, ms: number): void {
    tell({ kind: 'halted', process, ms })
    process.halt()
    clock.after(ms, process.wakeUp)
  }

  /** To one of those that live, as if somebody had thrown dice. */
  function toOne(which: number, act: (process: SimulatedProcess) => void): void {
    const process = [...living][which % living.size]
    if (process) act(process)
  }

  return {
    server,
    start,
    setWeather(faults: number): void {
      server.setWeather(faults)
      tell({ kind: 'server', what: `${faults} of all requests meet a fault` })
    },
    setValid(token: string, isValid: boolean): void {
      server.setValid(token, isValid)
      tell({ kind: 'server', what: `${isValid ? 'accepts' : 'refuses'} ${token}` })
    },
    /** Somebody outside locks the file, or the server goes away. */
    lock(ms: number): void {
      lockedUntil = Math.max(lockedUntil, now() + ms)
      tell({ kind: 'locked', ms })
      if (mirror.postgres) cutAllOff()
    },
    cutOff: (which: number) => toOne(which, dropServer),
    halt: (which: number, ms: number, isCut: boolean) =>
      toOne(which, (process) => {
        if (isCut) dropServer(process)
        standStill(process, ms)
      }),
    /** Of whoever starts from now on. */
    setFilters(filters: ListFilters): void {
      configured.filters = filters
      tell({ kind: 'filters changed', filters })
    },
    setNewest(newest: Newest): void {
      configured.newest = newest
      tell({ kind: 'newest changed', newest })
    },
    /** The clock of all processes goes back. */
    setClockBack(ms: number): void {
      wall.setBack(ms)
      tell({ kind: 'clock set', ms })
    },
    /** The clock of the machine of one of the processes goes on, or back: its mirror is on a server. */
    setOwnClock: (which: number, ms: number) =>
      toOne(which, (process) => {
        clocksAhead.set(process, (clocksAhead.get(process) ?? 0) + ms)
        tell({ kind: 'own clock set', process, ms })
      }),
    replaceToken(organization: string, after: string): void {
      tokens.set(organization, after)
      everUsed.add(after)
      tell({ kind: 'token replaced', organization, after })
    },
    /** What whoever starts now is configured with. */
    filters: () => configured.filters,
    tokenOf,
    /** All tokens that were ever configured. */
    tokens: () => [...everUsed],
    living: () => living.size,
    isLocked: () => now() < lockedUntil,
    /** Whether the mirror has been locked, or away, at any time since then. */
    wasLockedSince: (time: number) => lockedUntil >= time,
    /** Ends all processes that still live, so that they do not disturb the next history. */
    end(): void {
      for (const process of living) process.exit()
    },
  }
}
