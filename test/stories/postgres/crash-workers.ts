import type { Ended, Running } from '../../helpers/processes.ts'
import { startProxy, type TestProxy } from '../../helpers/proxy.ts'
import type { Workspace } from '../../helpers/workspace.ts'

/** Workers on one mirror, each behind a network of its own, and what happens to them. */
export interface Workers {
  /** Does one thing of all that can happen, by the dice. */
  strike(): Promise<string>
  /** Whatever was done is undone; all are stopped by SIGTERM. Returns how all have ended, these last. */
  stop(): Promise<Ended[]>
  killed: number
}

export interface WorkersOptions {
  workspace: Workspace
  count: number
  port: number
  /** Between 0 and 1. */
  random: () => number
  /** The environment of a worker that reaches the server at this port. */
  envOf: (port: number) => Record<string, string>
  /** Ends a random connection at the server. */
  terminate: () => Promise<void>
  restart: () => Promise<void>
}

interface Worker {
  proxy: TestProxy
  running: Running
}

/** Starts that many workers. */
export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { workspace, count, port, random, envOf, terminate, restart } = options
  const start = (proxy: TestProxy) =>
    workspace.start(['start', '--log-level', 'debug'], { env: envOf(proxy.port) })
  const proxies = await Promise.all(Array.from({ length: count }, () => startProxy(port)))
  const ends: Promise<Ended>[] = []
  let isStopping = false
  const workers: Worker[] = proxies.map((proxy) => ({ proxy, running: start(proxy) }))
  for (const worker of workers) superviseStart(worker)

  /** As a service manager: one that finds no server at its start ends with 4, and is started again. */
  function superviseStart(worker: Worker): void {
    const { running } = worker
    void running.ended.then((ended) => {
      if (isStopping || worker.running !== running) return
      ends.push(Promise.resolve(ended))
      worker.running = start(worker.proxy)
      superviseStart(worker)
    })
  }
  const healing = new Set<() => void>()

  /** Undoes something after a while, or at the end. */
  function later(ms: number, heal: () => void): void {
    const once = () => {
      if (healing.delete(once)) heal()
    }
    healing.add(once)
    setTimeout(once, ms).unref()
  }

  const some = () => workers[Math.floor(random() * workers.length)] as Worker
  const state = { killed: 0 }

  const deeds: Record<string, () => void | Promise<void>> = {
    'kill -9'() {
      const worker = some()
      const { running } = worker
      worker.running = start(worker.proxy)
      superviseStart(worker)
      signal(running, 'SIGKILL')
      ends.push(running.ended)
      state.killed++
    },
    'stop and continue'() {
      const { running } = some()
      signal(running, 'SIGSTOP')
      later(500 + random() * 25_000, () => signal(running, 'SIGCONT'))
    },
    'cut off and stand still'() {
      const { running, proxy } = some()
      signal(running, 'SIGSTOP')
      proxy.cut()
      later(500 + random() * 8000, () => signal(running, 'SIGCONT'))
    },
    'cut network': () => some().proxy.cut(),
    'half-open network'() {
      const { proxy } = some()
      proxy.freeze()
      later(1000 + random() * 30_000, proxy.thaw)
    },
    'slow network'() {
      const { proxy } = some()
      proxy.delay(random() * 300)
      later(5000, () => proxy.delay(0))
    },
    'end a connection': terminate,
    'restart the server': restart,
  }
  const names = Object.keys(deeds)

  return {
    get killed() {
      return state.killed
    },
    async strike() {
      const name = names[Math.floor(random() * names.length)] ?? ''
      await deeds[name]?.()
      return name
    },
    async stop() {
      isStopping = true
      for (const heal of healing) heal()
      for (const { running } of workers) {
        signal(running, 'SIGCONT')
        signal(running, 'SIGTERM')
      }
      return Promise.all([...ends, ...workers.map(({ running }) => running.ended)])
    },
  }
}

/** To whoever still lives. */
function signal(running: Running, name: NodeJS.Signals): void {
  try {
    running.killAll(name)
  } catch {
    // It is gone.
  }
}
