import type { Config } from '../../src/config/config.ts'
import type { VirtualClock } from './clock.ts'
import { runCommand } from './commands.ts'
import { type Blow, type HappeningOf, listenWith, type Newest, type Tell } from './happening.ts'
import type { History } from './history.ts'
import type { ListFilters } from './list.ts'
import { createNetwork } from './network.ts'
import type { Mistake } from './planted.ts'
import { cutAllOff, cutOff } from './postgres/server-steps.ts'
import { createProcess, createRuntime, type SimulatedProcess } from './process.ts'
import { createServer } from './server.ts'

export interface WorldOptions {
  history: History
  /** What is wrong with the program. */
  mistake: Mistake
  mirror: Pick<Config, 'database' | 'postgres'>
  clock: VirtualClock
  tell: Tell
  complain: (what: string) => void
}

/** A process that was told to stop has so long to do so. */
const STOPPING_MS = 5000

/** Processes, network and server of one history, in simulated time; and what people do to them. */
export function createWorld({ history, mistake, mirror, clock, tell, complain }: WorldOptions) {
  const { setting, random } = history
  const { now, wall } = clock
  const tokens = new Map(setting.tenants.map(({ id, token }) => [id, token]))
  const everUsed = new Set(tokens.values())
  const processes = new Map<string, SimulatedProcess>()
  /** Of whoever starts now. */
  const configured: { filters: ListFilters; newest: Newest } = { filters: {}, newest: 'auto' }
  let lockedUntil = 0
  const server = createServer(history, random.fork(), tell)
  const exchangeOf = createNetwork(setting, clock, server, tell, random.fork())

  const living = () => [...processes.values()].filter((process) => process.isAlive())

  /** The token that a process would use for an organization now. */
  function tokenOf(process: SimulatedProcess, organization: string): string {
    const isFile = setting.tenants.find(({ id }) => id === organization)?.tokenFile === true
    return (isFile ? tokens : process.tokens).get(organization) ?? ''
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

  function start({ command, blows }: HappeningOf<'start'>): void {
    const process = createProcess({
      name: `${command.kind}-${processes.size + 1}`,
      acceptsRemovals: command.kind === 'sync' && command.acceptsRemovals,
      tokens: new Map(tokens),
      blows,
      clock,
      strike,
    })
    processes.set(process.name, process)
    tell({ kind: 'started', process })
    for (const one of blows) if ('ms' in one) clock.after(one.ms, () => strike(process, one.blow))
    const machine = {
      process,
      mistake,
      config: configOf(process),
      runtime: createRuntime(process, clock, random.fork(), processes),
      exchange: exchangeOf(process),
      tell,
    }
    const end = (error: unknown) => {
      if (!process.isAlive()) return
      process.exit()
      tell({ kind: 'ended', process, error })
    }
    process.run(() => runCommand(machine, command)).then(() => end(null), end)
  }

  function strike(process: SimulatedProcess, blow: Blow, where = 'some moment'): void {
    if (!process.isAlive()) return
    if (blow === 'kill') {
      process.exit()
      tell({ kind: 'killed', process, where })
    } else if (blow === 'signal') tellToStop(process)
    else if ('clockMs' in blow) {
      process.clockAheadMs += blow.clockMs
      tell({ kind: 'own clock set', process, ms: blow.clockMs })
    } else {
      if (blow.isCut) {
        tell({ kind: 'cut off', process })
        cutOff(process)
      }
      if (blow.standsMs === 0) return
      tell({ kind: 'halted', process, ms: blow.standsMs })
      process.halt()
      clock.after(blow.standsMs, process.wakeUp)
    }
  }

  function tellToStop(process: SimulatedProcess): void {
    tell({ kind: 'signalled', process })
    process.tellToStop()
    const due = wall() + STOPPING_MS
    function checkStopped(): void {
      // Where the clock was set back meanwhile, its waits are longer.
      if (!process.isAlive() || wall() < due || process.was.halted) return
      // After a 401 a process writes the hold first, however long the mirror is locked: without it, the next process would send the token
      // again.
      const canStopAt = process.was.refused ? lockedUntil + STOPPING_MS : 0
      if (now() < canStopAt) clock.after(canStopAt - now(), checkStopped)
      else complain(`${process.name} has not stopped ${STOPPING_MS} ms after its signal`)
    }
    clock.after(STOPPING_MS, checkStopped)
  }

  const act = listenWith({
    start,
    strike({ which, blow }) {
      const process = living()[which % living().length]
      if (process) strike(process, blow)
    },
    locked({ ms }) {
      lockedUntil = Math.max(lockedUntil, now() + ms)
      if (mirror.postgres) cutAllOff()
    },
    'filters changed': ({ filters }) => Object.assign(configured, { filters }),
    'newest changed': ({ newest }) => Object.assign(configured, { newest }),
    'clock set': ({ ms }) => clock.setBack(ms),
    'token replaced'({ organization, after }) {
      tokens.set(organization, after)
      everUsed.add(after)
    },
  })

  return {
    hear: (happening: Parameters<Tell>[0]) => {
      server.hear(happening)
      act(happening)
    },
    relent: server.relent,
    /** What whoever starts now is configured with. */
    filters: () => configured.filters,
    tokenOf,
    /** All tokens that were ever configured. */
    tokens: () => [...everUsed],
    living,
    isLocked: () => now() < lockedUntil,
    /** Whether somebody outside has held the mirror's write lock at any time since then, or its server was away. */
    wasLockedSince: (time: number) => lockedUntil >= time,
  }
}
